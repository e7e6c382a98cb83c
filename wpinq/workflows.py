"""Whole jobs, from protected data to synthetic data."""
