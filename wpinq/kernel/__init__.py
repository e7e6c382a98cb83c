"""What must be trusted: epsilon as it is charged, the ledger, the noise, orders, releases and the session."""
