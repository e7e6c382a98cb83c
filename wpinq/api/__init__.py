"""The public ways to write, price, simulate and release queries."""
