"""Marginals of tables over attributes of public sizes: planned, released, and modelled."""
