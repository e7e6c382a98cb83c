"""Rewrites: a tuple of rules of one signature, each with its argument that weights are kept.

A rule `(script, subject) -> subject` betters one kind of subject (`rewrite_targets`) or leaves it as it is. Which are
switched on is a selection of the tuple; its order counts for rules of one kind.
"""

from wpinq.engines.sql import blocks as targets
from wpinq.engines.sql.blocks import Block
from wpinq.engines.sql.rewrites.joins import (
    drop_self_joins,
    filter_by_partner,
    fuse,
    intersect_as_join,
    order_by_row,
    order_tables,
)
from wpinq.engines.sql.rewrites.lookups import cut_wanted_records, fold_lookups, look_up_either_way, make_one_piece
from wpinq.engines.sql.rewrites.symmetry import one_an_orbit, one_of_two
from wpinq.engines.sql.rewrites.weights import count_rows, put_side_by_side, read_equal_weights, read_own_norm
from wpinq.engines.sql.script import Rewrite

REWRITES = (
    Rewrite("fuse", targets.Reuse, fuse),
    Rewrite("partner_filter", targets.Minimum, filter_by_partner),
    Rewrite("intersect_as_join", targets.Minimum, intersect_as_join),
    Rewrite("self_joins", Block, drop_self_joins),
    Rewrite("unique_norms", targets.KeyNorm, read_own_norm),
    Rewrite("late_aggregation", targets.Total, count_rows),
    Rewrite("symmetry", targets.Addends, one_an_orbit),
    Rewrite("mirror_images", targets.Addends, one_of_two),
    Rewrite("side_by_side", targets.SideBySide, put_side_by_side),
    Rewrite("one_piece", targets.QueryRows, make_one_piece),
    Rewrite("wanted_pieces", targets.QueryRows, cut_wanted_records),
    Rewrite("fold_lookups", targets.QueryRows, fold_lookups),
    Rewrite("sorted_pairs", targets.QueryRows, look_up_either_way),
    Rewrite("join_order", targets.QueryRows, order_tables),
    Rewrite("join_order_by_row", targets.QueryRows, order_by_row),
    Rewrite("equal_weights", targets.StoredTable, read_equal_weights),
)
"""All of them; the default everywhere but in tests and measurements."""
