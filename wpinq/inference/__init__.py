"""Inference over released numbers, by plain functions.

None of it reads protected data, so it is post-processing: its privacy cost is none. Where what is given is not what the
parameters say, it raises AnswersError (PlanError for a `Tree`, which is part of what is asked).
"""
