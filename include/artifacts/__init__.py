"""The files that no Python package brings: the lock of jars and archives, their cache, Spark's settings."""
