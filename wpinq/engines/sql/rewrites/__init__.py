"""Rewrites: a tuple of rules of one signature, each in its module with the argument that weights and bounds are kept.

A rule `(script, subject) -> subject` betters one kind of subject (`blocks.subjects`) or leaves it as it is. Which are
switched on is a selection of the tuple; its order counts for rules of one kind.
"""

from wpinq.engines.relational.blocks.block import Block
from wpinq.engines.relational.blocks.subjects import (
    Addends,
    KeyNorm,
    Minimum,
    QueryRows,
    Reuse,
    SideBySide,
    StoredTable,
    Total,
)
from wpinq.engines.relational.rewrites.equal_weights import read_equal_weights
from wpinq.engines.relational.rewrites.fuse import fuse
from wpinq.engines.relational.rewrites.intersect_as_join import intersect_as_join
from wpinq.engines.relational.rewrites.join_order import order_tables
from wpinq.engines.relational.rewrites.join_order_by_row import order_by_row
from wpinq.engines.relational.rewrites.late_aggregation import count_rows
from wpinq.engines.relational.rewrites.lookups import fold_lookups
from wpinq.engines.relational.rewrites.mirror_images import one_of_two
from wpinq.engines.relational.rewrites.one_piece import make_one_piece
from wpinq.engines.relational.rewrites.partner_filter import filter_by_partner
from wpinq.engines.relational.rewrites.self_joins import drop_self_joins
from wpinq.engines.relational.rewrites.side_by_side import put_side_by_side
from wpinq.engines.relational.rewrites.sorted_pairs import look_up_either_way
from wpinq.engines.relational.rewrites.symmetry import one_an_orbit
from wpinq.engines.relational.rewrites.unique_norms import read_own_norm
from wpinq.engines.relational.rewrites.wanted_pieces import cut_wanted_records
from wpinq.engines.relational.sql.script import Rewrite

REWRITES = (
    Rewrite("fuse", Reuse, fuse),
    Rewrite("partner_filter", Minimum, filter_by_partner),
    Rewrite("intersect_as_join", Minimum, intersect_as_join),
    Rewrite("self_joins", Block, drop_self_joins),
    Rewrite("unique_norms", KeyNorm, read_own_norm),
    Rewrite("late_aggregation", Total, count_rows),
    Rewrite("symmetry", Addends, one_an_orbit),
    Rewrite("mirror_images", Addends, one_of_two),
    Rewrite("side_by_side", SideBySide, put_side_by_side),
    Rewrite("one_piece", QueryRows, make_one_piece),
    Rewrite("wanted_pieces", QueryRows, cut_wanted_records),
    Rewrite("fold_lookups", QueryRows, fold_lookups),
    Rewrite("sorted_pairs", QueryRows, look_up_either_way),
    Rewrite("join_order", QueryRows, order_tables),
    Rewrite("join_order_by_row", QueryRows, order_by_row),
    Rewrite("equal_weights", StoredTable, read_equal_weights),
)
"""All of them; the default everywhere but in tests and measurements."""
