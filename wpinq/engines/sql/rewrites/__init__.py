"""Rewrites: a tuple of rules of one signature, each with its argument that weights are kept.

A rule `(script, subject) -> subject` betters one kind of subject (`rewrite_targets`) or leaves it as it is. Which are
switched on is a selection of the tuple; its order counts for rules of one kind.
"""

from wpinq.engines.sql import blocks as targets
from wpinq.engines.sql.rewrites import joins, lookups, symmetry, weights
from wpinq.engines.sql.script import Rewrite

#: All of them; the default everywhere but in tests and measurements.
REWRITES = (
    Rewrite("fuse", targets.Reuse, joins.fuse),
    Rewrite("partner_filter", targets.Minimum, joins.filter_by_partner),
    Rewrite("intersect_as_join", targets.Minimum, joins.intersect_as_join),
    Rewrite("self_joins", targets.Block, joins.drop_self_joins),
    Rewrite("unique_norms", targets.Total, weights.read_own_norm),
    Rewrite("late_aggregation", targets.Total, weights.count_rows),
    Rewrite("eager_counts", targets.Total, weights.multiply_counts),
    Rewrite("no_repeats", targets.Relation, weights.find_no_repeats),
    Rewrite("symmetry", targets.Addends, symmetry.one_an_orbit),
    Rewrite("mirror_images", targets.Addends, symmetry.one_of_two),
    Rewrite("side_by_side", targets.SideBySide, weights.put_side_by_side),
    Rewrite("scan_once", targets.SideBySide, weights.scan_once),
    Rewrite("one_piece", targets.QueryRows, lookups.make_one_piece),
    Rewrite("wanted_pieces", targets.QueryRows, lookups.cut_wanted_records),
    Rewrite("fold_lookups", targets.QueryRows, lookups.fold_lookups),
    Rewrite("sorted_pairs", targets.QueryRows, lookups.look_up_either_way),
    Rewrite("join_order", targets.QueryRows, joins.order_tables),
    Rewrite("join_order_by_row", targets.QueryRows, joins.order_by_row),
    Rewrite("equal_weights", targets.StoredTable, weights.read_equal_weights),
)
