"""Weighted datasets as columns: how records lie in them, and where they are held."""
