"""wPINQ in Python: differentially private queries over weighted datasets.

After Proserpio, Goldberg and McSherry, *Calibrating Data to Sensitivity in Private Data Analysis*, VLDB 2014.
"""

import importlib
import types
import typing

from wpinq.api.evaluate import evaluate as evaluate
from wpinq.api.query import Query as Query
from wpinq.api.schema import Schema as Schema
from wpinq.api.schema import schema as schema
from wpinq.api.simulate import simulate as simulate
from wpinq.api.source import rows_per_person as rows_per_person
from wpinq.api.source import source as source
from wpinq.columns.dataset import WeightedDataset as WeightedDataset
from wpinq.data import EdgeList as EdgeList
from wpinq.errors import AnswersError as AnswersError
from wpinq.errors import BudgetExceeded as BudgetExceeded
from wpinq.errors import EpsilonError as EpsilonError
from wpinq.errors import EvaluationFailed as EvaluationFailed
from wpinq.errors import ExpressionError as ExpressionError
from wpinq.errors import LanguageError as LanguageError
from wpinq.errors import LedgerError as LedgerError
from wpinq.errors import PlanError as PlanError
from wpinq.errors import SessionError as SessionError
from wpinq.errors import SourceClosed as SourceClosed
from wpinq.errors import SourceExhausted as SourceExhausted
from wpinq.errors import SourceRejected as SourceRejected
from wpinq.errors import WpinqError as WpinqError
from wpinq.errors import WpinqWarning as WpinqWarning
from wpinq.expr.column import Column as Column
from wpinq.expr.column import col as col
from wpinq.expr.types import category as category
from wpinq.expr.types import decimal as decimal
from wpinq.kernel.release import Release as Release
from wpinq.kernel.sandbox.limits import Limits as Limits
from wpinq.kernel.session import Session as Session
from wpinq.language import Program as Program
from wpinq.language import parse as parse
from wpinq.language import unparse as unparse
from wpinq.marginals.cells import Attribute as Attribute
from wpinq.marginals.cells import attribute as attribute
from wpinq.marginals.plots import plot_marginals as plot_marginals
from wpinq.marginals.released import MarginalTables as MarginalTables
from wpinq.marginals.synthetic_rows import FittedTable as FittedTable
from wpinq.marginals.synthetic_rows import SyntheticRows as SyntheticRows
from wpinq.marginals.tabulation import MarginalTabulation as MarginalTabulation
from wpinq.measure.accuracy import accuracy as accuracy
from wpinq.measure.answers import Answers as Answers
from wpinq.measure.bill import Bill as Bill
from wpinq.measure.bill import bill as bill
from wpinq.measure.bill import fit_to_budget as fit_to_budget
from wpinq.measure.measurement import ListedMeasurement as ListedMeasurement
from wpinq.measure.measurement import Measurement as Measurement
from wpinq.measure.statement import Balance as Balance
from wpinq.measure.statement import Event as Event
from wpinq.service.client import ServiceConnection as ServiceConnection
from wpinq.service.client import connect as connect
from wpinq.sinks.compared_marginals import ComparedMarginal as ComparedMarginal
from wpinq.sinks.keys import digits as digits
from wpinq.sinks.keys import integers as integers
from wpinq.sinks.keys import product as product
from wpinq.tables.aggregates import Estimate as Estimate
from wpinq.tables.functions import count as count
from wpinq.tables.functions import count_distinct as count_distinct
from wpinq.tables.functions import mean as mean
from wpinq.tables.functions import median as median
from wpinq.tables.functions import most_common as most_common
from wpinq.tables.functions import quantile as quantile
from wpinq.tables.functions import sum as sum
from wpinq.tables.released import OpenTable as OpenTable
from wpinq.tables.saved import Table as Table
from wpinq.tables.tabulation import Tabulation as Tabulation

if typing.TYPE_CHECKING:
    from wpinq import functions as functions
    from wpinq import graphs as graphs
    from wpinq import histograms as histograms
    from wpinq import mcmc as mcmc

__version__ = "0.1.0"

_LATER = ("functions", "graphs", "histograms", "synthesis")
_HERE = [name for name, value in globals().items() if name[0] != "_" and not isinstance(value, types.ModuleType)]
globals()["__all__"] = sorted((*_HERE, *_LATER))  # for run time: type checkers see from the imports what is public


def __getattr__(name: str) -> types.ModuleType:
    """`wp.graphs`, `wp.histograms` and `wp.synthesis` load when first used."""
    if name in _LATER:
        return importlib.import_module(f"wpinq.{name}")
    raise AttributeError(f"module 'wpinq' has no attribute {name!r}")
