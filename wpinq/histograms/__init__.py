"""Histogram strategies as queries, and inference that lowers the error of their answers.

Only releasing what `measure` of a strategy gives costs privacy, as the plan's bill says. All else works on released
answers, on public guesses or on no data at all: its privacy cost is none.
"""

from wpinq.histograms.attributes import Marginals as Marginals
from wpinq.histograms.attributes import Product as Product
from wpinq.histograms.charts import plot_estimate as plot_estimate
from wpinq.histograms.matrices import MatrixMechanism as MatrixMechanism
from wpinq.histograms.matrices import PIdentity as PIdentity
from wpinq.histograms.matrices import optimise as optimise
from wpinq.histograms.ranking import Choice as Choice
from wpinq.histograms.ranking import Ranking as Ranking
from wpinq.histograms.ranking import choose as choose
from wpinq.histograms.ranking import simulated_distance as simulated_distance
from wpinq.histograms.ranking import simulated_error as simulated_error
from wpinq.histograms.ranking import simulated_sorted_error as simulated_sorted_error
from wpinq.histograms.strategy import Identity as Identity
from wpinq.histograms.strategy import LinearStrategy as LinearStrategy
from wpinq.histograms.strategy import Strategy as Strategy
from wpinq.histograms.trees import Hierarchical as Hierarchical
from wpinq.histograms.trees import Wavelet as Wavelet
from wpinq.histograms.unattributed import CountOfCounts as CountOfCounts
from wpinq.histograms.unattributed import HierarchicalCounts as HierarchicalCounts
from wpinq.histograms.unattributed import Sorted as Sorted
from wpinq.histograms.unattributed import earth_movers_distance as earth_movers_distance
from wpinq.histograms.workload import AllRanges as AllRanges
from wpinq.histograms.workload import Bins as Bins
from wpinq.histograms.workload import Kronecker as Kronecker
from wpinq.histograms.workload import Matrix as Matrix
from wpinq.histograms.workload import Prefixes as Prefixes
from wpinq.histograms.workload import Ranges as Ranges
from wpinq.histograms.workload import Stacked as Stacked
from wpinq.histograms.workload import Workload as Workload
from wpinq.inference.intervals import Bootstrap as Bootstrap
from wpinq.inference.intervals import bayes_count as bayes_count
from wpinq.inference.intervals import bootstrap as bootstrap
from wpinq.inference.intervals import laplace_sum_survival as laplace_sum_survival
from wpinq.inference.intervals import linear_half_widths as linear_half_widths
from wpinq.inference.least_squares import isotonic_l1 as isotonic_l1
from wpinq.inference.least_squares import isotonic_l2 as isotonic_l2
from wpinq.inference.least_squares import least_squares as least_squares
from wpinq.inference.least_squares import median as median
from wpinq.inference.least_squares import project_to_total as project_to_total
from wpinq.inference.least_squares import project_tree as project_tree
from wpinq.inference.least_squares import quantile as quantile
from wpinq.inference.least_squares import range_sums as range_sums
from wpinq.inference.least_squares import round_to_total as round_to_total
from wpinq.inference.least_squares import round_tree as round_tree
from wpinq.inference.least_squares import zero_subtrees as zero_subtrees
from wpinq.inference.tree import Tree as Tree
from wpinq.inference.tree import consistent_sizes as consistent_sizes
from wpinq.inference.tree import match_sizes as match_sizes
from wpinq.inference.tree import mean_consistency as mean_consistency
from wpinq.inference.tree import merge_estimates as merge_estimates
from wpinq.inference.tree import tree_least_squares as tree_least_squares
from wpinq.runtime.public import public_names

public_names(globals())
