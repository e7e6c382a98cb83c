"""The relational engine: plans as SQL over flat columns, run by an embedded database or by Spark."""
