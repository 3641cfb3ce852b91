"""Repairs of a table: planned, approved by a person, carried out once, verified (decision 0057)."""
