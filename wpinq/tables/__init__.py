"""Tables by name: groups and aggregates of their records, as measurements over operators."""
