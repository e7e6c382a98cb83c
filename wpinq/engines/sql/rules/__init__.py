"""What operators and primitives are in relations and terms: one rule each."""
