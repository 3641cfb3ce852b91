"""Is silver what the source database is? Rows of both, compared at a position (decision 0027)."""
