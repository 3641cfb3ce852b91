"""Pipelines as files, settings and connections from the environment: read once, at the edge."""
