"""Room: archive files. What an archive is made of: Parquet files, and manifests that name them.

``manifest`` decides what an archive holds and ``integrity`` whether its files are whole. Start at
``store``; ``archive`` writes what is here and ``restore`` reads it.
"""
