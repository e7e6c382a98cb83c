"""How far one protected unit moves what a plan gives: rules sharper than counting paths, each proved.

From the ground: symbolic records (`terms`), the change of a dataset (`change`), bounds on weights (`ceiling`), what a
Join does to changes (`joining`). Operators say their own rule in these words; `plan/sensitivity/stability.py` puts
them together. The proofs are in docs/proofs/stability.md.
"""
