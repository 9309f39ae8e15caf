"""Room: audit. Is everything there, and how late: by topic and span of time, again and again."""
