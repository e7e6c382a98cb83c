"""Synthetic graphs from answers: methods, seeds, the workflow, reports and plots. Nothing here can reach a session."""

from wpinq.graphs.synthesis.method import Bounds, Method
from wpinq.graphs.synthesis.methods import find_method, method_names
from wpinq.graphs.synthesis.statistics import graph_statistics
from wpinq.graphs.synthesis.workflow import SyntheticGraph, synthesize

__all__ = ["Bounds", "Method", "SyntheticGraph", "find_method", "graph_statistics", "method_names", "synthesize"]
