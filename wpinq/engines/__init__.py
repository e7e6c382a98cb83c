"""Engines: ways to evaluate a plan. None knows of queries, budgets or sessions, nor of another engine."""
