"""Room: archive. Topics as Parquet files, with a manifest that makes every record count exactly once.

``manifest`` decides what an archive holds and ``rounds`` what is archived next. Start at
``write.Archiver`` for writing and at ``restore.restore`` for the way back.
"""
