"""The SQL engine: plans as programs of SQL over flat columns, run by DuckDB or by Spark.

`terms` and `blocks` hold datasets as terms over tables. `rules` make them of operators, and `rewrites` better them.
`script`, `sums` and `emit` write them as statements, and `compile` runs the passes in order. Nothing here reads data
but `duckdb/` and `spark/`.
"""
