"""Symbolic scalar expressions: types, values, nodes, functions, tracing of lambdas, compilation."""

from wpinq.expr import functions as functions
