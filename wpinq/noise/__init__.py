"""Noise mechanisms with exact draws: Laplace, geometric, ladders, permute-and-flip."""
