"""The relational engine on an embedded DuckDB."""
