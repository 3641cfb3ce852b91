"""Names and paths, the ledger, the Delta transaction, run reports."""
