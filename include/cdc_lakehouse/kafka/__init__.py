"""Offsets, topics and the cluster, as Kafka tells them now."""
