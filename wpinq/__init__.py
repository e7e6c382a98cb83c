"""wPINQ in Python: differentially private queries over weighted datasets.

After Proserpio, Goldberg and McSherry, *Calibrating Data to Sensitivity in Private Data Analysis*, VLDB 2014.
"""

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wpinq import errors as errors
    from wpinq import functions as functions
    from wpinq import graphs as graphs
    from wpinq import histograms as histograms
    from wpinq import mcmc as mcmc
    from wpinq import stats as stats
    from wpinq import tables as tables
    from wpinq.api.people import people as people
    from wpinq.api.people import table as table
    from wpinq.api.query import Query as Query
    from wpinq.api.schema import Schema as Schema
    from wpinq.api.schema import schema as schema
    from wpinq.api.series import series as series
    from wpinq.api.simulate import evaluate as evaluate
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
    from wpinq.errors import SourceRejected as SourceRejected
    from wpinq.errors import WpinqError as WpinqError
    from wpinq.expr.declare import col as col
    from wpinq.expr.types import category as category
    from wpinq.expr.types import decimal as decimal
    from wpinq.kernel.release import Release as Release
    from wpinq.kernel.sandbox.admission import Limits as Limits
    from wpinq.kernel.session import Session as Session
    from wpinq.language import Program as Program
    from wpinq.language import parse as parse
    from wpinq.language import unparse as unparse
    from wpinq.language.sql.statement import sql as sql
    from wpinq.marginals.cells import attribute as attribute
    from wpinq.marginals.released import MarginalTables as MarginalTables
    from wpinq.marginals.report import plot_marginals as plot_marginals
    from wpinq.marginals.synthetic_rows import FittedTable as FittedTable
    from wpinq.measure.accuracy import accuracy as accuracy
    from wpinq.measure.answers import Answers as Answers
    from wpinq.measure.bill import Bill as Bill
    from wpinq.measure.bill import bill as bill
    from wpinq.measure.bill import fit_to_budget as fit_to_budget
    from wpinq.measure.group import Batch as Batch
    from wpinq.measure.measurement import Measurement as Measurement
    from wpinq.service.client import ServiceConnection as ServiceConnection
    from wpinq.service.client import connect as connect
    from wpinq.sinks.keys import digits as digits
    from wpinq.sinks.keys import integers as integers
    from wpinq.sinks.keys import product as product
    from wpinq.tables.agg import count as count
    from wpinq.tables.agg import count_distinct as count_distinct
    from wpinq.tables.agg import mean as mean
    from wpinq.tables.agg import median as median
    from wpinq.tables.agg import most_common as most_common
    from wpinq.tables.agg import quantile as quantile
    from wpinq.tables.agg import sum as sum
    from wpinq.tables.tabulation import Table as Table
    from wpinq.tables.tabulation import Tabulation as Tabulation
else:
    # The list above is the one list of public names. Each is imported when it is first used: `import wpinq` is fast.
    _IMPORT = re.compile(r"^    from (\S+) import (\w+) as", re.MULTILINE)
    _HOMES = {name: home for home, name in _IMPORT.findall(Path(__file__).read_text(encoding="utf-8"))}
    __all__ = sorted(_HOMES)
    #: What to write in place of names that other libraries have.
    _MENDS = {
        **dict.fromkeys(
            ("max", "min"),
            'a noisy extreme is a quantile, such as wp.quantile("age", 0.99, candidates=range(100)); of two values or '
            "of a list, functions.max and functions.min",
        ),
        **dict.fromkeys(("var", "variance", "std", "cov", "corr", "ols"), "it is in wp.stats: wp.stats.var"),
        **dict.fromkeys(("avg", "average"), 'write wp.mean("salary", lower=0, upper=100_000)'),
        **dict.fromkeys(("DataFrame", "read_csv", "from_pandas"), "session.protect(source, data, budget=1) takes data"),
    }

    def __getattr__(name: str) -> Any:
        from wpinq.runtime.public import public_names, unknown_name

        if name not in _HOMES:
            try:
                unknown_name("wpinq", name, _HOMES, _MENDS.get(name, ""))
            except AttributeError as error:
                error.__traceback__ = None  # as `public` has it, which would be loaded for every import
                raise
        home = _HOMES[name]
        module = importlib.import_module(f"{home}.{name}" if home == __name__ else home)
        if home == __name__:
            globals()[name] = module
        else:
            globals()[name] = getattr(module, name)
            public_names(globals())
        return globals()[name]

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
