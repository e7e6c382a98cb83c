"""Workflows that measure protected data and hand answers on: a session on one side, Answers on the other."""

from wpinq.workflows.measuring import measure_graph

__all__ = ["measure_graph"]
