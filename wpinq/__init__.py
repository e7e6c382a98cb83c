"""wPINQ in Python: differentially private queries over weighted datasets.

After Proserpio, Goldberg and McSherry, *Calibrating Data to Sensitivity in Private Data Analysis*, VLDB 2014.
"""

import importlib
import types
import typing

from wpinq.client import ServiceConnection as ServiceConnection
from wpinq.client import connect as connect
from wpinq.dataset import WeightedDataset as WeightedDataset
from wpinq.declaring import Schema as Schema
from wpinq.declaring import schema as schema
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
from wpinq.expr.library import *  # noqa: F403 - the functions of lambdas
from wpinq.expr.types import category as category
from wpinq.expr.types import decimal as decimal
from wpinq.ingest import EdgeList as EdgeList
from wpinq.kernel.asking_limits import Limits as Limits
from wpinq.kernel.release import Release as Release
from wpinq.kernel.session import Session as Session
from wpinq.language import Program as Program
from wpinq.language import parse as parse
from wpinq.language import unparse as unparse
from wpinq.measure.accuracy import accuracy as accuracy
from wpinq.measure.answers import Answers as Answers
from wpinq.measure.bill import Bill as Bill
from wpinq.measure.bill import bill as bill
from wpinq.measure.bill import fit_to_budget as fit_to_budget
from wpinq.measure.compared_marginals import ComparedMarginal as ComparedMarginal
from wpinq.measure.key_domains import digits as digits
from wpinq.measure.key_domains import integers as integers
from wpinq.measure.key_domains import product as product
from wpinq.measure.measurement import ListedMeasurement as ListedMeasurement
from wpinq.measure.measurement import Measurement as Measurement
from wpinq.measure.statement import Balance as Balance
from wpinq.measure.statement import Event as Event
from wpinq.public import evaluate as evaluate
from wpinq.query import Query as Query
from wpinq.simulating import simulate as simulate
from wpinq.sources import rows_a_person as rows_a_person
from wpinq.sources import source as source
from wpinq.tables.aggregate_functions import count as count
from wpinq.tables.aggregate_functions import count_distinct as count_distinct
from wpinq.tables.aggregate_functions import mean as mean
from wpinq.tables.aggregate_functions import median as median
from wpinq.tables.aggregate_functions import most_common as most_common
from wpinq.tables.aggregate_functions import quantile as quantile
from wpinq.tables.aggregate_functions import sum as sum
from wpinq.tables.aggregates import Estimate as Estimate
from wpinq.tables.attribute_codes import Attribute as Attribute
from wpinq.tables.attribute_codes import attribute as attribute
from wpinq.tables.fitted_table import FittedTable as FittedTable
from wpinq.tables.marginal_plots import plot_marginals as plot_marginals
from wpinq.tables.marginal_tabulation import MarginalTabulation as MarginalTabulation
from wpinq.tables.open_table import OpenTable as OpenTable
from wpinq.tables.released_marginals import MarginalTables as MarginalTables
from wpinq.tables.saved_table import Table as Table
from wpinq.tables.synthetic_rows import SyntheticRows as SyntheticRows
from wpinq.tables.tabulation import Tabulation as Tabulation

if typing.TYPE_CHECKING:
    from wpinq import graphs as graphs
    from wpinq import histograms as histograms
    from wpinq import synthesis as synthesis

__version__ = "0.1.0"

_LATER = ("graphs", "histograms", "synthesis")
_HERE = [name for name, value in globals().items() if name[0] != "_" and not isinstance(value, types.ModuleType)]
globals()["__all__"] = sorted((*_HERE, *_LATER))  # for run time: type checkers see from the imports what is public


def __getattr__(name: str) -> types.ModuleType:
    """`wp.graphs`, `wp.histograms` and `wp.synthesis` load when first used."""
    if name in _LATER:
        return importlib.import_module(f"wpinq.{name}")
    raise AttributeError(f"module 'wpinq' has no attribute {name!r}")
