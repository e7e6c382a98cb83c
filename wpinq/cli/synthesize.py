"""`wpinq synthesize`: measure a protected graph, forget it, and fit a public one."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from wpinq.cli import arguments
from wpinq.data import EdgeList
from wpinq.data.files import has_columns
from wpinq.data.source_files import edge_columns
from wpinq.display.plots import axes_or_new
from wpinq.errors import EvaluationFailed, SourceRejected, UsageError, WpinqError
from wpinq.graphs.synthesis.method import Bounds
from wpinq.graphs.synthesis.methods import DEFAULT_METHOD, method_names
from wpinq.graphs.synthesis.random_graphs import import_igraph
from wpinq.graphs.synthesis.report import report, save_plots
from wpinq.graphs.synthesis.synthesize import (
    ALL_STATISTICS,
    FittingOptions,
    SyntheticGraph,
    holds_answers,
    holds_run,
    load_run,
    loaded_note,
    prepare_folder,
    save_answers,
    save_note,
    save_run,
    save_uncertainty,
    synthesize,
    traced_statistics,
)
from wpinq.graphs.synthesis.uncertainty import Interval, phrase, warning
from wpinq.mcmc.run import ChainBars
from wpinq.mcmc.settings import BETA, MOST_STEPS, SCHEDULES, STEPS_PER_EDGE, CheckpointError, Settings
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.workflows import measure_graph

# The measuring half of `wpinq synthesize`: noted in the folder, saved as it comes, taken up again after any end.

FORMAT, FORMAT_VERSION = "wpinq synthesis measuring", 6
"""The version rises when methods come to measure something else for the same words: what a ledger holds of the former
would not replay, and going on would pay anew."""
_NOTE = "measuring.json"
_NODES: dict[str, type] = {"int": int, "str": str}


@dataclass(frozen=True, slots=True)
class MeasuringOptions:
    """The measurements that the command line asks for; see `measure_graph`.

    Paths are absolute.
    """

    graph: str
    epsilon: str
    node: str
    split: Mapping[str, str] | None
    nodes: int | None
    degree: int | None
    ledger: str | None
    budget: str | None
    version: str | None
    engine: str
    columns: tuple[str, str] | tuple[int, int] | None = None
    comments: str | None = None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MeasuringOptions:
        """What `asdict` gave; ValueError or TypeError when it is not."""
        made = MeasuringOptions(**data)
        words = (made.graph, made.epsilon, made.engine, *(made.split or {}).values())
        ends = made.columns or ()
        optional = [word for word in (made.ledger, made.budget, made.version, made.comments) if word is not None]
        numbers = [number for number in (made.nodes, made.degree) if number is not None]
        right = all(isinstance(word, str) for word in (*words, *optional)) and all(type(n) is int for n in numbers)
        if not right or len(ends) not in (0, 2) or made.node not in _NODES:
            raise ValueError("not of this format")
        return made


def is_measuring(folder: Path) -> bool:
    """Whether the folder holds a run that ended while it measured."""
    return (folder / _NOTE).exists()


def measure(measuring: MeasuringOptions, fitting: FittingOptions, folder: Path, notice: str = "") -> dict[str, Answers]:
    """Measure into a folder, from which the run can go on whatever happens once this has begun.

    The bill is printed when all is checked that can be without the graph, and a notice on stderr.

    Raises
    ------
    WpinqError
        As `measure_graph`. Where nothing can have been spent, the folder holds no run afterwards.
    """
    fitting.find()
    prepare_folder(folder)
    save_note(folder / _NOTE, FORMAT, {"asked": asdict(measuring), "told": fitting.to_json()}, FORMAT_VERSION)
    paid: set[str] = set()
    try:
        return _measure(measuring, fitting, folder, paid, notice)
    except (WpinqError, OSError) as error:
        if not paid and not isinstance(error, EvaluationFailed):
            (folder / _NOTE).unlink(missing_ok=True)
        raise


def go_on_measuring(folder: Path) -> tuple[FittingOptions, dict[str, Answers]]:
    """Repeat the measurements of a run that was interrupted.

    The ledger gives back all that was paid for.

    Raises
    ------
    CheckpointError
        When no ledger can do that, or the note cannot be read.
    """
    with loaded_note(folder / _NOTE, FORMAT, FORMAT_VERSION) as known:
        measuring, fitting = MeasuringOptions.from_json(known["asked"]), FittingOptions.from_json(known["told"])
    if measuring.ledger is None or measuring.version is None:
        raise CheckpointError(
            f"the run in {folder} ended while it measured, and only with --ledger and --data-version could it go on; "
            "the answers it came to are kept there: measure anew with another --folder"
        )
    notice = ""
    if arguments.is_new(Path(measuring.ledger)):
        if holds_answers(folder):
            raise CheckpointError(
                f"the ledger {measuring.ledger} is not there, and a new one would pay again for what was measured: "
                "put it back, or measure anew with another --folder"
            )
        notice = f"new ledger: {measuring.ledger}"
    return fitting, _measure(measuring, fitting, folder, set(), notice)


def _measure(
    measuring: MeasuringOptions, fitting: FittingOptions, folder: Path, paid: set[str], notice: str
) -> dict[str, Answers]:
    method = fitting.find()

    def on_bill(bill: Bill) -> None:
        if measuring.budget is not None:
            arguments.check_covered(bill, dict.fromkeys(bill, measuring.budget), "--budget")
        print(f"The bill:\n{bill}\n\n{_plan(fitting.settings)}\n", flush=True)
        asked = {label.partition(":")[0] for label, _ in bill.listed}
        for name in () if measuring.split else [name for name in method.shares if name not in asked]:
            print(f"Not asked: {name}, which no graph of so few nodes has enough of to stand out of the noise.\n")
        if notice:
            arguments.tell(notice)

    def on_answers(name: str, table: Answers) -> None:
        paid.add(name)
        save_answers(folder, name, table)

    told = asdict(measuring)
    graph = EdgeList(told.pop("graph"), columns=told.pop("columns"), comments=told.pop("comments"))
    told |= {"node": _NODES[told["node"]], "bounds": Bounds(told.pop("nodes"), told.pop("degree"))}
    on_step = paid.add  # steps run after the debit
    answers = measure_graph(graph, method, **told, on_bill=on_bill, on_step=on_step, on_answers=on_answers)
    save_run(folder, fitting, answers)
    (folder / _NOTE).unlink(missing_ok=True)
    print(f"Measured; the graph is closed. Answers are in {folder}", flush=True)
    return answers


def _plan(settings: Settings) -> str:
    by_edges = f"{STEPS_PER_EDGE} steps for each edge of the seed graph, at most {MOST_STEPS:,}, fewer at rest"
    each = by_edges if settings.steps is None else f"{settings.steps:,} steps"
    return f"Then {'one chain of' if settings.chains == 1 else f'{settings.chains} chains, each of'} {each}."


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    what = "measure an undirected graph, forget it, and make a public one that fits the answers"
    made = commands.add_parser("synthesize", help=what)
    made.add_argument("--out", type=Path, required=True, metavar="OUT", help="the synthetic edge list")
    defaults: dict[argparse.Action, Any] = {}

    def tell(group: Any, *names: str, **how: Any) -> None:
        action = group.add_argument(*names, **how)
        defaults[action], action.default = action.default, None  # a run that goes on has been told

    tell(made, "graph", type=Path, nargs="?", metavar="FILE", help="the edge list; loops are left out")
    measured = partial(tell, made.add_argument_group("what is measured"))
    measured("--epsilon", metavar="E", help="the whole cost, to one undirected edge; at least 1e-9")
    known = f"{', '.join(method_names())}, or several of the last with + (default {DEFAULT_METHOD})"
    measured("--query", metavar="NAME", default=DEFAULT_METHOD, help=known)
    measured("--bucket", type=int, metavar="K", default=20, help="of degrees in tbd (default 20)")
    shares = "of epsilon; give all or none (with tags, triangle_count and largest_degree may be left out)"
    measured("--share", action="append", metavar="NAME=SHARE", help=shares)
    measured("--max-nodes", type=int, metavar="N", help="a public bound, of use to all but tags")
    measured("--max-degree", type=int, metavar="D", help="a public bound; without, from released degrees")
    ends = "that hold an edge: names in a csv, tsv or parquet file, places in text, as 1,2"
    measured("--columns", metavar="ONE,OTHER", help=ends)
    measured("--comments", metavar="SIGNS", help="that comments at the head of text begin with (default #%%)")
    measured("--node", choices=["int", "str"], default="int", help="the type of nodes (default int)")
    arguments.add_ledger(measured, " edges")
    walked = partial(tell, made.add_argument_group("how the graph is fitted"))
    each = f"of each chain (default: {STEPS_PER_EDGE} an edge of the seed graph, at most {MOST_STEPS:,}, fewer at rest)"
    walked("--steps", type=int, metavar="N", help=each)
    walked("--beta", type=float, metavar="B", default=BETA, help=f"at the end (default {BETA:g})")
    walked("--anneal-from", type=float, metavar="B0", help="beta at the beginning")
    annealing = ["geometric", "linear"]
    walked("--schedule", choices=annealing, default="geometric", help="of annealing (default geometric)")
    stop = "end at X (1) times the noise level; not with tags"
    walked("--stop-at-noise", type=float, nargs="?", const=1.0, metavar="X", help=stop)
    walked("--triad-share", type=float, metavar="SHARE", help="of proposals chosen to close a triangle")
    walked("--outside", action="store_true", help="score what was not asked for against zero")
    walked("--chains", type=int, metavar="N", default=1, help="default 1")
    walked("--seed", type=int, metavar="N", default=0, help="of all that is public (default 0)")
    walked("--chunk", type=int, metavar="N", help="steps between two looks (default: a fiftieth)")
    walked("--checkpoint-every", type=int, metavar="N", default=10, help="chunks (default 10)")
    walked("--no-statistics", action="store_true", help="do not trace triangles and clustering")
    kept = made.add_argument_group("what is kept")
    kept.add_argument("--report", type=Path, metavar="FILE", help="default: OUT.json")
    kept.add_argument("--folder", type=Path, metavar="FOLDER", help="answers and checkpoints (default: OUT.run)")
    kept.add_argument("--resume", action="store_true", help="go on with the run in the folder, as it was told")
    kept.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the synthetic graph and the chains")
    kept.add_argument("--quiet", action="store_true", help="no progress on stderr")
    made.set_defaults(command=lambda options: run(options, defaults))


def run(options: argparse.Namespace, defaults: Mapping[argparse.Action, Any]) -> None:
    """The command; `defaults` are of the options that a run is told once."""
    arguments.check_stdout()
    folder = options.folder or arguments.beside(options.out, ".run")
    report_file = options.report or arguments.beside(options.out, ".json")
    written = [options.out, report_file]
    for place in written:
        arguments.check_writable(place)
    arguments.check_distinct(written, [options.graph, options.ledger])
    _import_igraph(options.own_process)  # before anything is spent
    if options.plots is not None:
        axes_or_new(None)
    try:
        fitting, answers = (_gone_on if options.resume else _begun)(options, folder, defaults)
        graph = synthesize(
            answers,
            fitting.find(),
            fitting.settings,
            outside=fitting.outside,
            statistics=traced_statistics if fitting.trace_statistics else None,
            checkpoints=folder,
            on_update=None if options.quiet else ChainBars(),
            on_uncertainty=partial(_told, folder),
        )
    except KeyboardInterrupt:
        if not holds_run(folder) and not (is_measuring(folder) and (options.resume or options.data_version)):
            raise
        raise arguments.Interrupted(
            f"interrupted; what was debited stays spent. Go on with: {_again(options, folder)}"
        ) from None
    except OSError as error:
        if not (holds_run(folder) or is_measuring(folder)):
            raise  # nothing was measured, so nothing is spent
        kept = f"what was measured is paid for and kept. Go on with: {_again(options, folder)}"
        raise arguments.unwritten(error, kept) from None
    try:
        _write(graph, options, report_file)
    except OSError as error:
        raise arguments.unwritten(error, f"the graph is in {options.out}, and the report in {report_file}") from None


def _again(options: argparse.Namespace, folder: Path) -> str:
    return shlex.join(["wpinq", "synthesize", "--resume", "--folder", str(folder), "--out", str(options.out)])


def _import_igraph(own_process: bool) -> None:
    """Import igraph without matplotlib, in this process, which draws nothing."""
    hidden = own_process and not {"igraph", "matplotlib"} & set(sys.modules)
    if hidden:
        sys.modules["matplotlib"] = None  # type: ignore[assignment]
    try:
        import_igraph()
    finally:
        if hidden:
            del sys.modules["matplotlib"]


def _gone_on(
    options: argparse.Namespace, folder: Path, defaults: Mapping[argparse.Action, Any]
) -> tuple[FittingOptions, dict[str, Answers]]:
    given = [(*action.option_strings, "FILE")[0] for action in defaults if getattr(options, action.dest) is not None]
    if given:
        raise UsageError(f"--resume goes on as the run in the folder was told: leave out {', '.join(given)}")
    if holds_run(folder) or not is_measuring(folder):
        return load_run(folder)
    return go_on_measuring(folder)


def _begun(
    options: argparse.Namespace, folder: Path, defaults: Mapping[argparse.Action, Any]
) -> tuple[FittingOptions, dict[str, Answers]]:
    if options.graph is None or options.epsilon is None:
        raise UsageError("give FILE and --epsilon, or --resume")
    arguments.check_readable(options.graph)
    if options.columns is None and has_columns(options.graph):
        raise UsageError("--columns ONE,OTHER names those of the file that hold an edge: say which")
    notice = arguments.ledger_notice(options)
    if holds_run(folder) or is_measuring(folder):
        raise UsageError(f"{folder} holds a run: go on with --resume, or name another --folder")
    for action, value in defaults.items():
        if getattr(options, action.dest) is None:
            setattr(options, action.dest, value)
    fitting = _fitting(options)
    return fitting, measure(_measuring(options), fitting, folder, notice)


def _fitting(options: argparse.Namespace) -> FittingOptions:
    annealed = options.anneal_from is not None
    schedule = SCHEDULES[options.schedule if annealed else "constant"]
    betas = [options.anneal_from, options.beta] if annealed else [options.beta]
    looks = options.chunk, options.stop_at_noise, options.checkpoint_every
    settings = Settings(options.steps, schedule(*betas), options.chains, options.seed, *looks)
    return FittingOptions(
        options.query, options.bucket, options.triad_share, settings, options.outside, not options.no_statistics
    )


def _measuring(options: argparse.Namespace) -> MeasuringOptions:
    return MeasuringOptions(
        graph=str(options.graph.absolute()),
        epsilon=options.epsilon,
        node=options.node,
        split=arguments.pairs(options.share or [], "--share") or None,
        nodes=options.max_nodes,
        degree=options.max_degree,
        ledger=None if options.ledger is None else str(options.ledger.absolute()),
        budget=options.budget,
        version=options.data_version,
        engine=options.engine,
        columns=None if options.columns is None else edge_columns(options.columns, options.graph, "--columns"),
        comments=options.comments,
    )


def _write(graph: SyntheticGraph, options: argparse.Namespace, report_file: Path) -> None:
    made = report(graph)
    try:
        graph.write(options.out)
        report_file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        if options.plots is not None:
            save_plots(graph, options.plots)
    except (OSError, SourceRejected):
        raise arguments.NotSaved("the graph was not written; its run is kept: --resume with another --out") from None
    print("The synthetic graph; intervals are for the secret one:")
    for name, value in made["graph"].items():
        words = made["uncertainty"]["statistics"][name]["words"]
        print(f"{name.replace('_', ' ')}: {'none' if value is None else f'{value:.6g}'} ({words})")
    trace = graph.samples.traces[graph.samples.best]
    print(f"steps of the chain: {trace.steps[-1]:,}, {made['steps_per_edge']:.4g} an edge; {trace.stopped}")
    noise = f", noise alone: {graph.samples.noise:.6g}" if math.isfinite(graph.samples.noise) else ""
    print(f"score: {trace.score[-1]:.6g}{noise}")
    worst = max((value for value in made["r_hat"].values() if value is not None), default=None)
    if worst is not None:
        print(f"split R-hat at most {worst:.4g}: of chains that drift or differ, not of how near the secret graph is")
    if warned := warning(graph.uncertainty):
        print(warned)
    print(f"Wrote {options.out} and {report_file}", flush=True)


def _told(folder: Path, uncertainty: Mapping[str, Interval]) -> None:
    """What the answers tell, before there is a graph that could be used."""
    save_uncertainty(folder, uncertainty)
    print("What the answers tell of the secret graph:")
    for name in ALL_STATISTICS:
        print(f"  {name.replace('_', ' ')}: {phrase(uncertainty.get(name))}")
    if warned := warning(uncertainty):
        print(warned)
    print(flush=True)
