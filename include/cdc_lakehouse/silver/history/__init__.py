"""The versions of each row, and where each stood (`cdc-semantics` §9)."""
