"""The topology file: what is wanted, checked as a whole before any cluster is asked.

``spec`` and ``compiler`` decide what a valid file is and make the frozen ``plan`` that all else reads. Start at
``file.load``, the only place that reads the file; ``file.secrets`` reads passwords and keys when they are needed.
"""
