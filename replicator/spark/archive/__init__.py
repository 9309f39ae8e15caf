"""Room: archive. Topics as Parquet files, with a manifest that makes every record count exactly once.

``rounds`` decides what is archived next; what an archive is made of is in ``archive_files``.
Start at ``write.Archiver``; ``restore`` is the way back.
"""
