"""Whole jobs, from data to synthetic data."""
