"""Joint models of a whole table, fitted to noisy marginals: non-negative, consistent, and rows are drawn from them."""
