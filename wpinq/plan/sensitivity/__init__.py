"""How far one protected unit moves a plan's output: rules sharper than counting paths, each proved.

From the ground: symbolic records (`records`), the change of a dataset and its rule at a Join (`change`), bounds on
weights (`weight_bound`), weights in fixed proportions (`proportions`). Each operator states its rule in these terms,
and `stability` combines them. The proofs are in docs/proofs/stability.md.
"""
