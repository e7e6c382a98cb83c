"""Marginals of tables: planned, measured together, made consistent, and modelled, for attributes of public sizes."""
