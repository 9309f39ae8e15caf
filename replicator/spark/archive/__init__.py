"""Room: archive. Topics as Parquet with a manifest that makes every record count exactly once."""
