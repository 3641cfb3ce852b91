"""Kafka to bronze: what to read, one decode, one commit."""
