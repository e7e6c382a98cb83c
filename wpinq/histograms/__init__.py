"""Histogram strategies as query programs, and the inference that makes their answers sharp.

Only releasing what `measure` of a strategy gives costs privacy, as the plan's bill says. All else works on released
answers, on public guesses or on no data at all: its privacy cost is none.
"""

from wpinq.histograms.charts import plot_error_by_range_size, plot_estimate, plot_tree
from wpinq.histograms.composite import Kronecker, Stacked
from wpinq.histograms.inference.bayes import bayes_count, out_of_range_probability
from wpinq.histograms.inference.consistency import mean_consistency, tree_least_squares
from wpinq.histograms.inference.intervals import Bootstrap, bootstrap
from wpinq.histograms.inference.isotonic import isotonic_l1, isotonic_l2
from wpinq.histograms.inference.laplace_sums import laplace_sum_survival, linear_half_width, linear_half_widths
from wpinq.histograms.inference.least_squares import least_squares
from wpinq.histograms.inference.matching import consistent_sizes, match_sizes, merge_estimates
from wpinq.histograms.inference.nonnegative import (
    nonnegative_least_squares,
    project_to_total,
    project_tree,
    zero_subtrees,
)
from wpinq.histograms.inference.ranges import median, quantile, range_sums
from wpinq.histograms.inference.rounding import round_to_total, round_tree
from wpinq.histograms.inference.tree import Tree
from wpinq.histograms.ranking import Choice, Ranking, choose
from wpinq.histograms.simulate import simulated_distance, simulated_error, simulated_sorted_error
from wpinq.histograms.strategies.count_of_counts import CountOfCounts, earth_movers_distance
from wpinq.histograms.strategies.hierarchical import Hierarchical
from wpinq.histograms.strategies.identity import Identity
from wpinq.histograms.strategies.linear import LinearStrategy
from wpinq.histograms.strategies.location_counts import HierarchicalCounts, bottom_up
from wpinq.histograms.strategies.matrix import MatrixMechanism
from wpinq.histograms.strategies.optimised import PIdentity, optimise
from wpinq.histograms.strategies.product import Product
from wpinq.histograms.strategies.sorted import Sorted
from wpinq.histograms.strategies.strategy import Strategy
from wpinq.histograms.strategies.union_of_products import UnionOfProducts
from wpinq.histograms.strategies.wavelet import Wavelet
from wpinq.histograms.workload import AllRanges, Bins, Matrix, Prefixes, Ranges, Workload

__all__ = [
    "AllRanges",
    "Bins",
    "Bootstrap",
    "Choice",
    "CountOfCounts",
    "Hierarchical",
    "HierarchicalCounts",
    "Identity",
    "Kronecker",
    "LinearStrategy",
    "Matrix",
    "MatrixMechanism",
    "PIdentity",
    "Prefixes",
    "Product",
    "Ranges",
    "Ranking",
    "Sorted",
    "Stacked",
    "Strategy",
    "Tree",
    "UnionOfProducts",
    "Wavelet",
    "Workload",
    "bayes_count",
    "bootstrap",
    "bottom_up",
    "choose",
    "consistent_sizes",
    "earth_movers_distance",
    "isotonic_l1",
    "isotonic_l2",
    "laplace_sum_survival",
    "least_squares",
    "linear_half_width",
    "linear_half_widths",
    "match_sizes",
    "mean_consistency",
    "median",
    "merge_estimates",
    "nonnegative_least_squares",
    "optimise",
    "out_of_range_probability",
    "plot_error_by_range_size",
    "plot_estimate",
    "plot_tree",
    "project_to_total",
    "project_tree",
    "quantile",
    "range_sums",
    "round_to_total",
    "round_tree",
    "simulated_distance",
    "simulated_error",
    "simulated_sorted_error",
    "tree_least_squares",
    "zero_subtrees",
]
