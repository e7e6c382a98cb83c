"""Text for people: the explanation of a query."""
