"""The incremental engine: a plan over a public candidate that changes a little at a time."""

from wpinq.engines.delta.evaluator import Evaluator as Evaluator
