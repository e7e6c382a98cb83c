"""`wpinq synthesize`: measure a protected graph, forget it, and make a public one that fits the answers."""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wpinq.commands.arguments import check_distinct, check_writable, column_names, is_new, pairs
from wpinq.commands.exits import Interrupted, NotSaved, UsageError, check_stdout, unwritten
from wpinq.commands.measuring import MeasuringOptions, go_on_measuring, is_measuring, measure
from wpinq.display.plots import axes_or_new
from wpinq.engines.contract import DEFAULT_ENGINE, ENGINES
from wpinq.errors import SourceRejected
from wpinq.graphs.synthesis.degrees import import_igraph
from wpinq.graphs.synthesis.estimates.threads import import_threadpoolctl
from wpinq.graphs.synthesis.folder import FittingOptions, holds_run, load_run, save_trust
from wpinq.graphs.synthesis.methods import DEFAULT_METHOD, method_names
from wpinq.graphs.synthesis.report import report
from wpinq.graphs.synthesis.structure import ALL_STATISTICS
from wpinq.graphs.synthesis.trust import Interval, phrase, warning
from wpinq.graphs.synthesis.workflow import SyntheticGraph, synthesize, traced_statistics
from wpinq.ingest.files import format_of
from wpinq.measure.answers import Answers
from wpinq.synthesis.progress_bars import ChainBars
from wpinq.synthesis.schedule import ConstantSchedule, GeometricSchedule, LinearSchedule, Schedule
from wpinq.synthesis.settings import MOST_STEPS, POWER, STEPS_AN_EDGE, Settings


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser(
        "synthesize", help="measure an undirected graph, forget it, and make a public one that fits the answers"
    )
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
    measured(
        "--share",
        action="append",
        metavar="NAME=SHARE",
        help="of epsilon; give all or none (with tags, triangle_count and largest_degree may be left out)",
    )
    measured("--max-nodes", type=int, metavar="N", help="a public bound, of use to all but tags")
    measured("--max-degree", type=int, metavar="D", help="a public bound; without, from released degrees")
    ends = "of a csv or parquet file that hold an edge"
    measured("--columns", metavar="ONE,OTHER", help=ends)
    measured("--node", choices=["int", "str"], default="int", help="the type of nodes (default int)")
    measured("--ledger", type=Path, metavar="FILE", help="where budgets are kept; made if absent")
    measured("--budget", metavar="EPSILON", help="of the source edges in the ledger; required with it")
    measured("--data-version", metavar="VERSION", help="your word for this state of the data")
    measured("--engine", choices=list(ENGINES), default=DEFAULT_ENGINE, help=f"default: {DEFAULT_ENGINE}")
    walked = partial(tell, made.add_argument_group("how the graph is fitted"))
    every = f"of each chain (default: {STEPS_AN_EDGE} an edge of the seed graph, at most {MOST_STEPS:,}, fewer at rest)"
    walked("--steps", type=int, metavar="N", help=every)
    walked("--power", type=float, metavar="P", default=POWER, help=f"at the end (default {POWER:g})")
    walked("--anneal-from", type=float, metavar="P0", help="the power at the beginning")
    annealing = ["geometric", "linear"]
    walked("--schedule", choices=annealing, default="geometric", help="of annealing (default geometric)")
    stop = "end at X (1) times the noise level; not with tags"
    walked("--stop-at-noise", type=float, nargs="?", const=1.0, metavar="X", help=stop)
    walked("--closing", type=float, metavar="SHARE", help="of proposals chosen to close a triangle")
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
    check_stdout()
    folder = options.folder or _beside(options.out, ".run")
    report_file = options.report or _beside(options.out, ".json")
    _check_places(options, report_file)
    _import_igraph(options.own_process)  # before anything is spent
    import_threadpoolctl()
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
            on_trust=partial(_told, folder),
        )
    except KeyboardInterrupt:
        if not holds_run(folder) and not (is_measuring(folder) and (options.resume or options.data_version)):
            raise
        raise Interrupted(f"interrupted; what was debited stays spent. Go on with: {_again(options, folder)}") from None
    except OSError as error:
        if not (holds_run(folder) or is_measuring(folder)):
            raise  # nothing was measured, so nothing is spent
        kept = f"what was measured is paid for and kept. Go on with: {_again(options, folder)}"
        raise unwritten(error, kept) from None
    try:
        _write(graph, options, report_file)
    except OSError as error:
        raise unwritten(error, f"the graph is in {options.out}, and the report in {report_file}") from None


def _again(options: argparse.Namespace, folder: Path) -> str:
    return shlex.join(["wpinq", "synthesize", "--resume", "--folder", str(folder), "--out", str(options.out)])


def _import_igraph(own_process: bool) -> None:
    """Import igraph. In a process of our own without matplotlib, which igraph loads to draw with: nobody asks it to."""
    hidden = own_process and not {"igraph", "matplotlib"} & set(sys.modules)
    if hidden:
        sys.modules["matplotlib"] = None  # type: ignore[assignment]
    try:
        import_igraph()
    finally:
        if hidden:
            del sys.modules["matplotlib"]


def _check_places(options: argparse.Namespace, report_file: Path) -> None:
    for place in (options.out, report_file):
        check_writable(place)
    check_distinct(
        [options.out, report_file], [place for place in (options.graph, options.ledger) if place is not None]
    )


def _gone_on(
    options: argparse.Namespace, folder: Path, defaults: Mapping[argparse.Action, Any]
) -> tuple[FittingOptions, dict[str, Answers]]:
    given = [(*action.option_strings, "FILE")[0] for action in defaults if getattr(options, action.dest) is not None]
    if given:
        raise UsageError(f"--resume goes on as the run in the folder was told: leave out {', '.join(given)}")
    if holds_run(folder) or not is_measuring(folder):
        return load_run(folder)
    fitting, answers = go_on_measuring(folder)
    _print_measured(folder)
    return fitting, answers


def _begun(
    options: argparse.Namespace, folder: Path, defaults: Mapping[argparse.Action, Any]
) -> tuple[FittingOptions, dict[str, Answers]]:
    if options.graph is None or options.epsilon is None:
        raise UsageError("give FILE and --epsilon, or --resume")
    if not options.graph.is_file() or not os.access(options.graph, os.R_OK):
        raise UsageError(f"there is no file {options.graph} that can be read")
    if (options.columns is not None) != (format_of(options.graph) in (".csv", ".parquet")):
        raise UsageError("--columns ONE,OTHER names those of a csv or parquet file that hold an edge: both or neither")
    if (options.ledger is None) != (options.budget is None):
        raise UsageError("--ledger and --budget go together: a ledger keeps a budget, and a budget needs one")
    if options.data_version is not None and options.ledger is None:
        raise UsageError("--data-version replays from a ledger: give --ledger and --budget")
    if holds_run(folder) or is_measuring(folder):
        raise UsageError(f"{folder} holds a run: go on with --resume, or name another --folder")
    for action, value in defaults.items():
        if getattr(options, action.dest) is None:
            setattr(options, action.dest, value)
    fitting, measuring = _fitting(options), _measuring(options)
    notice = ""
    if options.ledger is None:
        notice = "no ledger: nothing but you remembers what this spends"
    elif is_new(options.ledger):
        notice = f"new ledger: {options.ledger}"
    answers = measure(measuring, fitting, folder, notice)
    _print_measured(folder)
    return fitting, answers


def _print_measured(folder: Path) -> None:
    print(f"Measured; the graph is closed. Answers are in {folder}", flush=True)


def _fitting(options: argparse.Namespace) -> FittingOptions:
    schedule: Schedule = ConstantSchedule(options.power)
    if options.anneal_from is not None:
        made = GeometricSchedule if options.schedule == "geometric" else LinearSchedule
        schedule = made(options.anneal_from, options.power)
    looks = options.chunk, options.stop_at_noise, options.checkpoint_every
    settings = Settings(options.steps, schedule, options.chains, options.seed, *looks)
    return FittingOptions(
        options.query, options.bucket, options.closing, settings, options.outside, not options.no_statistics
    )


def _measuring(options: argparse.Namespace) -> MeasuringOptions:
    return MeasuringOptions(
        graph=str(options.graph.absolute()),
        epsilon=options.epsilon,
        node=options.node,
        split=pairs(options.share or [], "--share") or None,
        nodes=options.max_nodes,
        degree=options.max_degree,
        ledger=None if options.ledger is None else str(options.ledger.absolute()),
        budget=options.budget,
        version=options.data_version,
        engine=options.engine,
        columns=None if options.columns is None else column_names(options.columns, "--columns"),
    )


def _write(graph: SyntheticGraph, options: argparse.Namespace, report_file: Path) -> None:
    made = report(graph)
    try:
        graph.write(options.out)
        report_file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        if options.plots is not None:
            from wpinq.graphs.synthesis.graph_plots import save_plots

            save_plots(graph, options.plots)
    except (OSError, SourceRejected):
        raise NotSaved("the graph could not be written; its run is kept: --resume with another --out") from None
    print("The synthetic graph; intervals are for the secret one:")
    for name, value in made["graph"].items():
        words = made["trust"]["statistics"][name]["words"]
        print(f"{name.replace('_', ' ')}: {'none' if value is None else f'{value:.6g}'} ({words})")
    trace = graph.samples.traces[graph.samples.best]
    print(f"steps of the chain: {trace.steps[-1]:,}, {made['steps_an_edge']:.4g} an edge; {trace.stopped}")
    noise = f", noise alone: {graph.samples.noise:.6g}" if math.isfinite(graph.samples.noise) else ""
    print(f"score: {trace.score[-1]:.6g}{noise}")
    worst = max((value for value in made["r_hat"].values() if value is not None), default=None)
    if worst is not None:
        print(f"split R-hat at most {worst:.4g}: of chains that drift or differ, not of how near the secret graph is")
    if warned := warning(graph.trust):
        print(warned)
    print(f"Wrote {options.out} and {report_file}", flush=True)


def _told(folder: Path, trust: Mapping[str, Interval]) -> None:
    """What the answers tell, before there is a graph that could be used."""
    save_trust(folder, trust)
    print("What the answers tell of the secret graph:")
    for name in ALL_STATISTICS:
        print(f"  {name.replace('_', ' ')}: {phrase(trust.get(name))}")
    if warned := warning(trust):
        print(warned)
    print(flush=True)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
