"""HTTP routes, of analysts and of curators."""
