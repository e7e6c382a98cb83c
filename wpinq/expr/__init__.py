"""Symbolic scalar expressions: types, values, nodes, functions, tracing of lambdas, compilation."""
