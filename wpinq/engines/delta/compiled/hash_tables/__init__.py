"""Plans kept up to date by hash tables."""
