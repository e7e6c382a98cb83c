"""Estimates of a graph from released numbers, smooth in the logarithm of the degree."""
