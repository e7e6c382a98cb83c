"""`wpinq synthesize`: measure a protected graph, forget it, and fit a public one."""

from __future__ import annotations

import argparse
import json
import math
import shlex
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
            f"the run in {folder} ended during measurement and cannot resume without --ledger and --data-version. "
            "Its answers are kept there: measure again with another --folder"
        )
    notice = ""
    if arguments.is_new(Path(measuring.ledger)):
        if holds_answers(folder):
            raise CheckpointError(
                f"the ledger {measuring.ledger} is missing, and a new one would charge again for the same answers: "
                "restore it, or measure again with another --folder"
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
            print(f"Skipped: {name}, because its value in a graph of so few nodes cannot exceed the noise.\n")
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
    print(f"Measurement complete; the graph is no longer read. Answers are in {folder}", flush=True)
    return answers


def _plan(settings: Settings) -> str:
    by_edges = f"{STEPS_PER_EDGE} steps per edge of the seed graph, at most {MOST_STEPS:,}, fewer once the score stalls"
    each = by_edges if settings.steps is None else f"{settings.steps:,} steps"
    return f"Then {'one chain of' if settings.chains == 1 else f'{settings.chains} chains, each of'} {each}."


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    what = "measure an undirected graph, then fit a public synthetic graph to the answers"
    made = commands.add_parser("synthesize", help=what)
    made.add_argument("--out", type=Path, required=True, metavar="OUT", help="the synthetic edge list")
    defaults: dict[argparse.Action, Any] = {}

    def tell(group: Any, *names: str, **how: Any) -> None:
        action = group.add_argument(*names, **how)
        defaults[action], action.default = action.default, None  # a run that goes on has been told

    tell(made, "graph", type=Path, nargs="?", metavar="FILE", help="the edge list; loops are ignored")
    measured = partial(tell, made.add_argument_group("measurement"))
    measured("--epsilon", metavar="E", help="the total privacy cost for one undirected edge; at least 1e-9")
    known = f"{', '.join(method_names())}, or several of the last joined by + (default {DEFAULT_METHOD})"
    measured("--query", metavar="NAME", default=DEFAULT_METHOD, help=known)
    measured("--bucket", type=int, metavar="K", default=20, help="the bucket width of degrees in tbd (default 20)")
    shares = (
        "the share of epsilon of each measurement, all or none (optional with tags: triangle_count, largest_degree)"
    )
    measured("--share", action="append", metavar="NAME=SHARE", help=shares)
    measured("--max-nodes", type=int, metavar="N", help="a public bound on nodes; with tags, for feasibility only")
    measured("--max-degree", type=int, metavar="D", help="a public bound on degrees (default: from released degrees)")
    ends = "the columns of an edge: names in a csv, tsv or parquet file, positions in text, as 1,2"
    measured("--columns", metavar="ONE,OTHER", help=ends)
    measured("--comments", metavar="SIGNS", help="the characters that begin comments at the head of text (default #%%)")
    measured("--node", choices=["int", "str"], default="int", help="the type of nodes (default int)")
    arguments.add_ledger(measured, " edges")
    walked = partial(tell, made.add_argument_group("fitting"))
    every = f"steps per chain (default: {STEPS_PER_EDGE} an edge, at most {MOST_STEPS:,}, fewer once the score stalls)"
    walked("--steps", type=int, metavar="N", help=every)
    walked("--beta", type=float, metavar="B", default=BETA, help=f"the final inverse temperature (default {BETA:g})")
    walked("--anneal-from", type=float, metavar="B0", help="the initial inverse temperature of geometric annealing")
    stop = "stop at X times the noise level (1 without X); not with tags"
    walked("--stop-at-noise", type=float, nargs="?", const=1.0, metavar="X", help=stop)
    walked("--triad-share", type=float, metavar="SHARE", help="the share of proposals that close a triangle")
    walked("--outside", action="store_true", help="score unreleased records as if released as 0")
    walked("--chains", type=int, metavar="N", default=1, help="the number of chains (default 1)")
    walked("--seed", type=int, metavar="N", default=0, help="the seed of all public randomness (default 0)")
    walked("--chunk", type=int, metavar="N", help="steps between progress reports (default: 1/50 of them)")
    walked("--checkpoint-every", type=int, metavar="N", default=10, help="chunks between checkpoints (default 10)")
    walked("--no-statistics", action="store_true", help="do not trace triangles and clustering")
    kept = made.add_argument_group("output")
    kept.add_argument("--report", type=Path, metavar="FILE", help="the report (default: OUT.json)")
    kept.add_argument("--folder", type=Path, metavar="FOLDER", help="for answers and checkpoints (default: OUT.run)")
    kept.add_argument("--resume", action="store_true", help="resume the run in the folder with its original options")
    kept.add_argument("--plots", type=Path, metavar="FOLDER", help="a folder for plots of the graph and the chains")
    kept.add_argument("--quiet", action="store_true", help="no progress on stderr")
    made.set_defaults(command=lambda options: run(options, defaults))


def run(options: argparse.Namespace, defaults: Mapping[argparse.Action, Any]) -> None:
    """The command; `defaults` are of the options that a run takes once."""
    arguments.check_stdout()
    folder = options.folder or arguments.beside(options.out, ".run")
    report_file = options.report or arguments.beside(options.out, ".json")
    written = [options.out, report_file]
    for place in written:
        arguments.check_writable(place)
    arguments.check_distinct(written, [options.graph, options.ledger])
    import_igraph()  # before anything is spent
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
            f"interrupted; debits are not refunded. Resume with: {_again(options, folder)}"
        ) from None
    except OSError as error:
        if not (holds_run(folder) or is_measuring(folder)):
            raise  # nothing was measured, so nothing is spent
        kept = f"the answers are paid for and kept. Resume with: {_again(options, folder)}"
        raise arguments.unwritten(error, kept) from None
    try:
        _write(graph, options, report_file)
    except OSError as error:
        raise arguments.unwritten(error, f"the graph is in {options.out}, and the report in {report_file}") from None


def _again(options: argparse.Namespace, folder: Path) -> str:
    return shlex.join(["wpinq", "synthesize", "--resume", "--folder", str(folder), "--out", str(options.out)])


def _gone_on(
    options: argparse.Namespace, folder: Path, defaults: Mapping[argparse.Action, Any]
) -> tuple[FittingOptions, dict[str, Answers]]:
    given = [(*action.option_strings, "FILE")[0] for action in defaults if getattr(options, action.dest) is not None]
    if given:
        raise UsageError(f"--resume uses the original options of the run: leave out {', '.join(given)}")
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
        raise UsageError("this file has named columns: name those of an edge with --columns ONE,OTHER")
    notice = arguments.ledger_notice(options)
    if holds_run(folder) or is_measuring(folder):
        raise UsageError(f"{folder} holds a run: resume it with --resume, or name another --folder")
    for action, value in defaults.items():
        if getattr(options, action.dest) is None:
            setattr(options, action.dest, value)
    fitting = _fitting(options)
    return fitting, measure(_measuring(options), fitting, folder, notice)


def _fitting(options: argparse.Namespace) -> FittingOptions:
    betas = [beta for beta in (options.anneal_from, options.beta) if beta is not None]
    schedule = SCHEDULES["constant" if len(betas) == 1 else "geometric"](*betas)
    looks = options.chunk, options.stop_at_noise, options.checkpoint_every
    settings = Settings(options.steps, schedule, options.chains, options.seed, *looks)
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
        raise arguments.NotSaved(
            "the graph could not be written, but its run is kept: use --resume with another --out"
        ) from None
    print("Statistics of the synthetic graph, with intervals for the secret graph:")
    for name, value in made["graph"].items():
        words = made["uncertainty"]["statistics"][name]["words"]
        print(f"{name.replace('_', ' ')}: {'none' if value is None else f'{value:.6g}'} ({words})")
    trace = graph.samples.traces[graph.samples.best]
    print(f"steps of the chain: {trace.steps[-1]:,}, {made['steps_per_edge']:.4g} per edge; {trace.stopped}")
    noise = f", noise alone: {graph.samples.noise:.6g}" if math.isfinite(graph.samples.noise) else ""
    print(f"score (weighted L1 distance to the targets; 0 is an exact fit): {trace.score[-1]:.6g}{noise}")
    worst = max((value for value in made["r_hat"].values() if value is not None), default=None)
    if worst is not None:
        print(f"largest split R-hat: {worst:.4g} (convergence of the chains, 1 is best; no measure of accuracy)")
    if warned := warning(graph.uncertainty):
        print(warned)
    print(f"Wrote {options.out} and {report_file}", flush=True)


def _told(folder: Path, uncertainty: Mapping[str, Interval]) -> None:
    """What the answers tell, before there is a graph that could be used."""
    save_uncertainty(folder, uncertainty)
    print("Intervals for the secret graph, from the answers alone:")
    for name in ALL_STATISTICS:
        print(f"  {name.replace('_', ' ')}: {phrase(uncertainty.get(name))}")
    if warned := warning(uncertainty):
        print(warned)
    print(flush=True)
