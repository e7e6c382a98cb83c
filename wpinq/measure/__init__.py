"""Measurements, their bills, accuracy, answers and statements, as pure data."""
