"""Plans: immutable DAGs of operators. Pure data: no records, no engine, no budget."""
