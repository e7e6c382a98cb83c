"""Graphs: recipes, rescaled counts, degree sequences, and synthetic graphs."""

from typing import TYPE_CHECKING

from wpinq.graphs.counts import component_count as component_count
from wpinq.graphs.counts import count_noise_scale as count_noise_scale
from wpinq.graphs.counts import edges_from_joint_degrees as edges_from_joint_degrees
from wpinq.graphs.counts import four_clique_count as four_clique_count
from wpinq.graphs.counts import joint_degree_weight as joint_degree_weight
from wpinq.graphs.counts import largest_core as largest_core
from wpinq.graphs.counts import largest_degree as largest_degree
from wpinq.graphs.counts import nodes_from_weight as nodes_from_weight
from wpinq.graphs.counts import path_weight as path_weight
from wpinq.graphs.counts import square_weight as square_weight
from wpinq.graphs.counts import squares_from_weight as squares_from_weight
from wpinq.graphs.counts import star_count as star_count
from wpinq.graphs.counts import triangle_count as triangle_count
from wpinq.graphs.counts import triangle_weight as triangle_weight
from wpinq.graphs.counts import triangles_from_weight as triangles_from_weight
from wpinq.graphs.edges import read_edges as read_edges
from wpinq.graphs.edges import write_edges as write_edges
from wpinq.graphs.fitting import degree_sequence_from_ccdf as degree_sequence_from_ccdf
from wpinq.graphs.fitting import fit_degree_sequence as fit_degree_sequence
from wpinq.graphs.fitting import isotonic_degree_sequence as isotonic_degree_sequence
from wpinq.graphs.motifs import motif as motif
from wpinq.graphs.motifs import motif_total as motif_total
from wpinq.graphs.recipes import degree_ccdf as degree_ccdf
from wpinq.graphs.recipes import degree_sequence as degree_sequence
from wpinq.graphs.recipes import degrees as degrees
from wpinq.graphs.recipes import joint_degrees as joint_degrees
from wpinq.graphs.recipes import nodes as nodes
from wpinq.graphs.recipes import paths as paths
from wpinq.graphs.recipes import squares_by_degree as squares_by_degree
from wpinq.graphs.recipes import symmetrize as symmetrize
from wpinq.graphs.recipes import triangles_by_degree as triangles_by_degree
from wpinq.graphs.recipes import triangles_by_intersect as triangles_by_intersect
from wpinq.graphs.synthesis.fit import SyntheticGraph as SyntheticGraph
from wpinq.graphs.synthesis.fit import fit_graph as fit_graph
from wpinq.graphs.synthesis.method import Bounds as Bounds
from wpinq.graphs.tags import closed_wedges_by_tag as closed_wedges_by_tag
from wpinq.graphs.tags import degree_mass_by_tag as degree_mass_by_tag
from wpinq.graphs.tags import degree_tags as degree_tags
from wpinq.graphs.tags import half_edges as half_edges
from wpinq.graphs.tags import joint_degrees_by_tag as joint_degrees_by_tag
from wpinq.graphs.tags import pair_slices as pair_slices
from wpinq.runtime.public import public_names

if TYPE_CHECKING:
    from wpinq import synthesis as _synthesis  # the floor above, for the list of names alone: loaded when it is used

    synthesize = _synthesis.synthesize_graph

public_names(globals(), {"synthesize": "wpinq.synthesis.synthesize_graph"})
