"""Inference over released numbers: pure functions of public arrays, free of privacy cost."""
