"""`wpinq synthesize`: measure a protected graph, forget it, and make a public one that fits the answers."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wpinq.answers import Answers
from wpinq.bill import Bill
from wpinq.commands.errors import NotSaved, UsageError
from wpinq.engines.choice import DEFAULT_ENGINE, ENGINES
from wpinq.errors import SourceRejected
from wpinq.graphs.synthesis.degrees import import_igraph
from wpinq.graphs.synthesis.folder import Told, holds_run, load_run, prepare_folder, save_answers, save_run
from wpinq.graphs.synthesis.method import Bounds
from wpinq.graphs.synthesis.methods import DEFAULT_METHOD, method_names
from wpinq.graphs.synthesis.report import report
from wpinq.graphs.synthesis.workflow import SyntheticGraph, synthesize, traced_statistics
from wpinq.synthesis.sampling import Update
from wpinq.synthesis.schedule import Constant, Geometric, Linear, Schedule
from wpinq.synthesis.settings import POWER, Settings
from wpinq.workflows import measure_graph

_EVERY = 5.0
"""Seconds between two lines of progress, where they do not overwrite one another."""


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser(
        "synthesize", help="measure an undirected graph, forget it, and make a public one that fits the answers"
    )
    made.add_argument("graph", type=Path, nargs="?", metavar="FILE", help="the edge list; loops are left out")
    made.add_argument("--out", type=Path, required=True, metavar="OUT", help="the synthetic edge list")
    measured = made.add_argument_group("what is measured")
    measured.add_argument("--epsilon", metavar="E", help="the whole cost, to one undirected edge")
    measured.add_argument(
        "--query",
        default=DEFAULT_METHOD,
        metavar="NAME",
        help=f"{', '.join(method_names())}, or several with + (default {DEFAULT_METHOD})",
    )
    measured.add_argument("--bucket", type=int, default=20, metavar="K", help="of degrees in tbd (default 20)")
    measured.add_argument(
        "--share", action="append", default=[], metavar="NAME=SHARE", help="of epsilon; give all measurements or none"
    )
    measured.add_argument("--max-nodes", type=int, metavar="N", help="a public bound; without, from released degrees")
    measured.add_argument("--max-degree", type=int, metavar="D", help="a public bound; without, from released degrees")
    measured.add_argument("--node", choices=["int", "str"], default="int", help="the type of nodes (default int)")
    measured.add_argument("--ledger", type=Path, metavar="FILE", help="where budgets are kept; made if absent")
    measured.add_argument("--budget", metavar="EPSILON", help="of the source edges in the ledger; required with it")
    measured.add_argument("--data-version", metavar="VERSION", help="your word for this state of the data")
    measured.add_argument("--engine", choices=list(ENGINES), default=DEFAULT_ENGINE, help=f"default: {DEFAULT_ENGINE}")
    walked = made.add_argument_group("how the graph is fitted")
    walked.add_argument("--steps", type=int, default=1_000_000, metavar="N", help="of each chain (default 1000000)")
    walked.add_argument("--power", type=float, default=POWER, metavar="P", help=f"at the end (default {POWER:g})")
    walked.add_argument("--anneal-from", type=float, metavar="P0", help="the power at the beginning")
    walked.add_argument("--schedule", choices=["geometric", "linear"], default="geometric", help="of annealing")
    walked.add_argument(
        "--stop-at-noise", type=float, nargs="?", const=1.0, metavar="X", help="end at X (1) times the noise level"
    )
    walked.add_argument("--closing", type=float, metavar="SHARE", help="of proposals chosen to close a triangle")
    walked.add_argument("--outside", action="store_true", help="score what was not asked for against zero")
    walked.add_argument("--chains", type=int, default=1, metavar="N", help="default 1")
    walked.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is public (default 0)")
    walked.add_argument("--chunk", type=int, metavar="N", help="steps between two looks (default: a fiftieth)")
    walked.add_argument("--checkpoint-every", type=int, default=10, metavar="N", help="chunks (default 10)")
    walked.add_argument("--no-statistics", action="store_true", help="do not trace triangles and clustering")
    kept = made.add_argument_group("what is kept")
    kept.add_argument("--report", type=Path, metavar="FILE", help="default: OUT.json")
    kept.add_argument("--folder", type=Path, metavar="FOLDER", help="answers and checkpoints (default: OUT.run)")
    kept.add_argument("--resume", action="store_true", help="go on with the run in the folder; measures nothing")
    kept.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the synthetic graph and the chains")
    kept.add_argument("--quiet", action="store_true", help="no progress on stderr")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """The command."""
    folder = options.folder or _beside(options.out, ".run")
    report_file = options.report or _beside(options.out, ".json")
    for place in (options.out, report_file):
        if not os.access(place.parent, os.W_OK) or place.is_dir():
            raise UsageError(f"cannot write {place}: name a file in a folder that can be written to")
    import_igraph()  # before anything is spent
    if options.resume:
        if options.graph is not None or options.epsilon is not None:
            raise UsageError("--resume measures nothing: leave out FILE and --epsilon")
        told, answers = load_run(folder)
    else:
        told = _told(options)
        answers = _measure(options, told, folder)
    progress = _Progress(told.settings, sys.stderr.isatty()) if not options.quiet else None
    try:
        graph = synthesize(
            answers,
            told.find(),
            told.settings,
            outside=told.outside,
            statistics=traced_statistics if told.trace_statistics else None,
            checkpoints=folder,
            on_update=progress,
        )
    except KeyboardInterrupt:
        print(f"\nwpinq: stopped; go on with: wpinq synthesize --resume --folder {folder} --out OUT", file=sys.stderr)
        raise
    _write(graph, options, report_file)


def _measure(options: argparse.Namespace, told: Told, folder: Path) -> dict[str, Answers]:
    if options.graph is None or options.epsilon is None:
        raise UsageError("give FILE and --epsilon, or --resume")
    if not options.graph.is_file() or not os.access(options.graph, os.R_OK):
        raise UsageError(f"there is no file {options.graph} that can be read")
    if (options.ledger is None) != (options.budget is None):
        raise UsageError("--ledger and --budget go together: a ledger keeps a budget, and a budget needs one")
    if options.data_version is not None and options.ledger is None:
        raise UsageError("--data-version replays from a ledger: give --ledger and --budget")
    if holds_run(folder):
        raise UsageError(f"{folder} holds a run: go on with --resume, or name another --folder")
    method = told.find()
    prepare_folder(folder)
    if options.ledger is None:
        print("no ledger: nothing but you remembers what this spends", file=sys.stderr)
    answers = measure_graph(
        options.graph,
        method,
        options.epsilon,
        node={"int": int, "str": str}[options.node],
        split=_shares(options.share) or None,
        bounds=Bounds(options.max_nodes, options.max_degree),
        ledger=options.ledger,
        budget=options.budget,
        version=options.data_version,
        engine=options.engine,
        on_bill=_print_bill,
        on_answers=lambda name, table: save_answers(folder, name, table),
    )
    save_run(folder, told, answers)
    print("Measured; the graph is closed. Answers are in", folder, flush=True)
    return answers


def _told(options: argparse.Namespace) -> Told:
    schedule: Schedule = Constant(options.power)
    if options.anneal_from is not None:
        made = Geometric if options.schedule == "geometric" else Linear
        schedule = made(options.anneal_from, options.power)
    settings = Settings(
        options.steps,
        schedule,
        options.chains,
        options.seed,
        options.chunk,
        options.stop_at_noise,
        options.checkpoint_every,
    )
    return Told(options.query, options.bucket, options.closing, settings, options.outside, not options.no_statistics)


def _shares(given: Sequence[str]) -> dict[str, str]:
    shares = {}
    for item in given:
        name, equals, share = item.partition("=")
        if not (name and equals and share) or name in shares:
            raise UsageError(f"--share takes NAME=SHARE, each name once, not {item!r}")
        shares[name] = share
    return shares


def _print_bill(bill: Bill) -> None:
    print(f"The bill:\n{bill}\n", flush=True)


def _write(graph: SyntheticGraph, options: argparse.Namespace, report_file: Path) -> None:
    made = report(graph)
    try:
        graph.write(options.out)
        report_file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        if options.plots is not None:
            from wpinq.graphs.synthesis.plots import save_plots

            save_plots(graph, options.plots)
    except (OSError, SourceRejected):
        raise NotSaved("the graph could not be written; its run is kept: --resume with another --out") from None
    for name, value in made["graph"].items():
        print(f"{name.replace('_', ' ')}: {value:.6g}" if value is not None else f"{name.replace('_', ' ')}: none")
    print(f"score: {graph.samples.traces[graph.samples.best].score[-1]:.6g}, noise alone: {graph.samples.noise:.6g}")
    for name, value in made["r_hat"].items():
        print(f"split R-hat of {name.replace('_', ' ')}: {'none' if value is None else f'{value:.4g}'}")
    print(f"Wrote {options.out} and {report_file}", flush=True)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


class _Progress:
    """How chains go, on stderr: on one line that is overwritten on a terminal, else a line every few seconds.

    All of it is of synthetic graphs and released answers.
    """

    def __init__(self, settings: Settings, terminal: bool) -> None:
        self._latest: dict[int, Update] = {}
        self._chains, self._terminal, self._printed = settings.chains, terminal, 0.0

    def __call__(self, update: Update) -> None:
        self._latest[update.chain] = update
        done = all(latest.stopped for latest in self._latest.values()) and len(self._latest) == self._chains
        now = time.monotonic()
        if not (self._terminal or done or now - self._printed >= _EVERY):
            return
        self._printed = now
        line = "; ".join(self._said(self._latest[chain]) for chain in sorted(self._latest))
        if self._terminal:
            print(f"\r\x1b[K{line}", end="\n" if done else "", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def _said(self, update: Update) -> str:
        share, filled = update.steps / update.total, round(20 * update.steps / update.total)
        which = f"chain {update.chain} " if self._chains > 1 else ""
        bar = "#" * filled + "." * (20 - filled)
        return (
            f"{which}[{bar}] {share:.0%}, {update.rate:,.0f} steps/s, {update.acceptance:.1%} kept, "
            f"score {update.score:.4g} (noise {update.noise:.4g})" + (f", {update.stopped}" if update.stopped else "")
        )
