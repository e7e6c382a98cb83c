"""Symbolic scalar expressions: types, values, nodes, functions, tracing and compilation."""

from wpinq.expr import functions as functions
