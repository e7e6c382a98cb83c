"""wPINQ in Python: differentially private queries over weighted datasets.

After Proserpio, Goldberg and McSherry, *Calibrating Data to Sensitivity in Private Data Analysis*, VLDB 2014.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from wpinq.dataset import WeightedDataset
from wpinq.errors import (
    AnswersError,
    BudgetExceeded,
    EpsilonError,
    EvaluationFailed,
    ExpressionError,
    LanguageError,
    LedgerError,
    PlanError,
    SessionError,
    SourceRejected,
    WpinqError,
    WpinqWarning,
)
from wpinq.expr import library
from wpinq.expr.library import *  # noqa: F403 - the functions of lambdas, which are listed there
from wpinq.ingest import EdgeList
from wpinq.kernel.release import Release
from wpinq.kernel.session import Session
from wpinq.language import Program, parse, unparse
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill, bill, fit_to_budget
from wpinq.measure.measurement import Measurement
from wpinq.public import evaluate, simulate
from wpinq.query import Query, source

if TYPE_CHECKING:
    from wpinq import graphs, histograms, synthesis

__all__ = [
    "Answers",
    "AnswersError",
    "Bill",
    "BudgetExceeded",
    "EdgeList",
    "EpsilonError",
    "EvaluationFailed",
    "ExpressionError",
    "LanguageError",
    "LedgerError",
    "Measurement",
    "PlanError",
    "Program",
    "Query",
    "Release",
    "Session",
    "SessionError",
    "SourceRejected",
    "WeightedDataset",
    "WpinqError",
    "WpinqWarning",
    "bill",
    "evaluate",
    "fit_to_budget",
    "graphs",
    "histograms",
    "parse",
    "simulate",
    "source",
    "synthesis",
    "unparse",
]
__all__ += library.__all__


def __getattr__(name: str) -> ModuleType:
    """`wp.graphs`, `wp.histograms` and `wp.synthesis` load when first used."""
    if name in ("graphs", "histograms", "synthesis"):
        return importlib.import_module(f"wpinq.{name}")
    raise AttributeError(f"module 'wpinq' has no attribute {name!r}")
