"""Kafka Connect, asked over its REST interface: which connectors there are and whether they run."""
