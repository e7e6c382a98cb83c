"""Synthetic graphs from answers, without access to any session."""

from wpinq.graphs.synthesis.method import Bounds as Bounds
from wpinq.graphs.synthesis.method import Method as Method
from wpinq.graphs.synthesis.methods import find_method as find_method
from wpinq.graphs.synthesis.methods import method_names as method_names
from wpinq.graphs.synthesis.synthesize import SyntheticGraph as SyntheticGraph
from wpinq.graphs.synthesis.synthesize import graph_statistics as graph_statistics
from wpinq.graphs.synthesis.synthesize import synthesize as synthesize
