"""Routines with typed arguments, out of which the text of a module is made, and the modules themselves."""
