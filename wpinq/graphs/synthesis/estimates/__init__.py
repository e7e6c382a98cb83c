"""Estimates of a graph from released numbers, smooth in the logarithm of the degree."""

from wpinq.graphs.synthesis.estimates.degree_curve import estimate_degrees as estimate_degrees
from wpinq.graphs.synthesis.estimates.mixing import DegreeClasses as DegreeClasses
from wpinq.graphs.synthesis.estimates.mixing import estimate_clustering as estimate_clustering
from wpinq.graphs.synthesis.estimates.mixing import estimate_mixing as estimate_mixing
