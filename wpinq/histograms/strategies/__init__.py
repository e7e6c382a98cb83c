"""Strategies: each a query program and its inference, one strategy a file."""
