"""The key that a table names itself (decision 0034)."""
