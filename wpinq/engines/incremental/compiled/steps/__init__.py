"""Plans as steps over columns, and what a step weighs as a formula over others."""
