"""Bytes to Arrow: frames, writer schemas, decoding. Knows nothing of Debezium."""
