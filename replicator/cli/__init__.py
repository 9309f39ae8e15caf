"""Room: cli. The `replicator` command: one file per group of verbs; options and printing, no decisions.

Start at ``main.run_command``; ``options`` and ``output`` are what all verbs share. Packages: ``file``, ``operation``,
``roles``, ``spark``.
"""
