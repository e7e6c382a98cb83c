"""Rules: each operator as a relation, each primitive as a term."""
