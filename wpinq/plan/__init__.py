"""Plans: immutable DAGs of operators, without records, engine or budget."""
