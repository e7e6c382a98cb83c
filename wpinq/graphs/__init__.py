"""Graphs: recipes, fitting of released degree statistics, generators and synthesis."""
