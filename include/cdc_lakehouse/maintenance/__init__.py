"""Optimize, vacuum, clean: what keeps tables fast and small."""
