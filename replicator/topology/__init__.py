"""The topology file: what is wanted, checked as a whole before any cluster is asked.

``shape`` and the ``*_rules`` decide what a valid file is; ``compile`` makes the frozen ``plan`` that all else reads.
Start at ``load``, the only place that reads the file; ``secrets`` reads passwords and keys when they are needed.
"""
