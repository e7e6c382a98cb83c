"""Functions that are said in primitives, by rules from expressions to expressions: no engine has to know them.

A module of this folder defines them, and is found there.
"""
