"""Room: archive. Topics as Parquet files, with a manifest that makes every record count exactly once.

``manifest`` decides what an archive holds, ``rounds`` what is archived next, and ``integrity`` whether
its files are whole. Start at ``write.Archiver``; ``restore`` is the way back.
"""
