"""Erase keys: which rows are meant, where they are, and how they go."""
