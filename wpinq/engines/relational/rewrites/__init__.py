"""Rewrites from facts: each in a module of its own, with the argument that weights and error bound are kept."""
