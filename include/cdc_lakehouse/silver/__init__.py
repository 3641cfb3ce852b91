"""Bronze to silver: the fold per key and the one MERGE."""
