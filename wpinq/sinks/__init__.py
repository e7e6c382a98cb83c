"""Sinks: the mechanisms that release a plan's output."""
