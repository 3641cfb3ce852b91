"""How silver's schema follows that of bronze, by the table's policy (decision 0026)."""
