"""The SQL engine on Apache Spark: the programs of DuckDB, in the SQL of Spark."""
