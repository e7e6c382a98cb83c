"""Engines: ways to evaluate a plan, without queries, budgets, sessions or other engines."""
