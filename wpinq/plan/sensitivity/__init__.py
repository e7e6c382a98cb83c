"""The sensitivity of a plan to one protected unit: proved rules sharper than path counts.

From the bottom up: symbolic records (`records`), the change of a dataset and its rule at a Join (`change`), bounds on
weights (`weight_bound`), weights in fixed proportions (`proportions`). Each operator states its rule in these terms,
and `stability` combines them. The proofs are in docs/proofs/stability.md.
"""
