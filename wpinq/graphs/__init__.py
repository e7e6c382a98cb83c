"""Graphs: recipes, rescaling of released weights, fitting of released degree statistics, synthesis, baselines."""

from wpinq.graphs.baselines import JointDegrees, sala_joint_degrees
from wpinq.graphs.edges import read_edges, write_edges
from wpinq.graphs.fitting import degree_sequence_from_ccdf, fit_degree_sequence, isotonic_degree_sequence
from wpinq.graphs.motifs import motif, motif_total
from wpinq.graphs.recipes import degree_ccdf, degree_sequence, degrees, joint_degrees, nodes, paths, symmetrize
from wpinq.graphs.rescale import (
    count_noise_scale,
    edges_from_joint_degrees,
    joint_degree_weight,
    nodes_from_weight,
    path_weight,
    square_weight,
    squares_from_weight,
    triangle_weight,
    triangles_from_weight,
)
from wpinq.graphs.subgraphs import squares_by_degree, triangles_by_degree, triangles_by_intersect
from wpinq.graphs.synthesis.workflow import SyntheticGraph, synthesize
from wpinq.graphs.tags import (
    closed_wedges_by_tag,
    degree_mass_by_tag,
    degree_tags,
    half_degree_ccdf,
    half_edges,
    joint_degrees_by_tag,
)

__all__ = [
    "JointDegrees",
    "SyntheticGraph",
    "closed_wedges_by_tag",
    "count_noise_scale",
    "degree_ccdf",
    "degree_mass_by_tag",
    "degree_sequence",
    "degree_sequence_from_ccdf",
    "degree_tags",
    "degrees",
    "edges_from_joint_degrees",
    "fit_degree_sequence",
    "half_degree_ccdf",
    "half_edges",
    "isotonic_degree_sequence",
    "joint_degree_weight",
    "joint_degrees",
    "joint_degrees_by_tag",
    "motif",
    "motif_total",
    "nodes",
    "nodes_from_weight",
    "path_weight",
    "paths",
    "read_edges",
    "sala_joint_degrees",
    "square_weight",
    "squares_by_degree",
    "squares_from_weight",
    "symmetrize",
    "synthesize",
    "triangle_weight",
    "triangles_by_degree",
    "triangles_by_intersect",
    "triangles_from_weight",
    "write_edges",
]
