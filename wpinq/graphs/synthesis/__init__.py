"""Synthetic graphs from answers, without access to any session."""

from wpinq.graphs.synthesis.fit import graph_statistics as graph_statistics
from wpinq.graphs.synthesis.method import Method as Method
from wpinq.graphs.synthesis.methods import find_method as find_method
from wpinq.graphs.synthesis.methods import method_names as method_names
