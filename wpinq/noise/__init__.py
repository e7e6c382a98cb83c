"""Ladders: how far triangles, stars, cliques or the largest degree of a graph can move, at every distance from it."""
