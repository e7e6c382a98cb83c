"""Epsilon arithmetic, mechanisms and the ledger: what a release costs, and how it is made private."""
