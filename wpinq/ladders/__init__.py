"""Ladders: how far the number of triangles, stars or cliques of a graph can move, at every distance from it."""
