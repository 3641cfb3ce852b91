"""Which columns and rows silver has of those of bronze (decision 0030)."""
