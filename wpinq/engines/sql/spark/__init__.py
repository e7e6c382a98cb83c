"""The relational engine on Apache Spark: the same plans, rewrites and programs as on DuckDB, in Spark's SQL."""
