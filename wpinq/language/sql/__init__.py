"""SQL read into the same plans as chains and text programs: sqlglot parses, and we lower."""
