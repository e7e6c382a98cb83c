"""`wpinq synthesize`: measure a protected graph, forget it, and fit a public one."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wpinq.cli import arguments
from wpinq.data import EdgeList
from wpinq.data.files import has_columns
from wpinq.data.source_files import edge_columns
from wpinq.display.plots import axes_or_new
from wpinq.errors import SourceRejected, UsageError
from wpinq.graphs.synthesis import fit
from wpinq.graphs.synthesis.directed import DIRECTED
from wpinq.graphs.synthesis.method import Bounds, Method
from wpinq.graphs.synthesis.methods import DEFAULT_METHOD, find_method, method_names
from wpinq.graphs.synthesis.public_nodes import PublicNodes, read_nodes
from wpinq.graphs.synthesis.random_graphs import import_igraph
from wpinq.graphs.synthesis.report import report, save_plots
from wpinq.graphs.synthesis.uncertainty import Interval, phrase, warning
from wpinq.mcmc.run import ChainBars
from wpinq.mcmc.settings import BETA, MOST_STEPS, STEPS_PER_EDGE, Settings
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill
from wpinq.synthesis import measure_graph


def add_parser(commands: Any) -> None:
    """Add the command to those of the command line."""
    made = commands.add_parser("synthesize", help="measure a graph, then fit a public synthetic graph to the answers")
    made.add_argument("--out", type=Path, required=True, metavar="OUT", help="the synthetic edge list")
    made.add_argument("graph", type=Path, nargs="?", metavar="FILE", help="the edge list; loops are ignored")
    measurement, fitting = made.add_argument_group("measurement"), made.add_argument_group("fitting")
    measured, walked = measurement.add_argument, fitting.add_argument
    measured("--epsilon", metavar="E", help="the total privacy cost for one edge; at least 1e-9")
    known = f"{', '.join(method_names())}, or several of the last joined by + (default {DEFAULT_METHOD})"
    measured("--query", metavar="NAME", default=DEFAULT_METHOD, help=known)
    measured("--directed", action="store_true", help="directed edges, each a protected unit: --query directed")
    shares = (
        "the share of epsilon of each measurement, all or none (optional with tags: pair_slices, triangle_count, "
        "largest_degree, component_count, edge_count, largest_core)"
    )
    measured("--share", action="append", metavar="NAME=SHARE", help=shares)
    measured("--max-nodes", type=int, metavar="N", help="a public bound on nodes; with tags, for feasibility only")
    measured("--max-degree", type=int, metavar="D", help="a public bound on degrees (default: from released degrees)")
    ends = "the columns of an edge: names in a csv, tsv or parquet file, positions in text, as 1,2"
    measured("--columns", metavar="ONE,OTHER", help=ends)
    measured("--comments", metavar="SIGNS", help="the characters that begin comments at the head of text (default #%%)")
    measured("--node", choices=["int", "str"], default="int", help="the type of nodes (default int)")
    public = "all nodes that may have an edge, a node a line, from public knowledge and never from the graph"
    measured("--nodes", type=Path, metavar="FILE", help=public)
    named = "the column of the nodes' public labels in a csv or tsv file of --nodes: edges by label come near too"
    measured("--label", metavar="NAME", help=named)
    arguments.add_ledger(measurement, " edges")
    every = f"steps per chain (default: {STEPS_PER_EDGE} an edge, at most {MOST_STEPS:,}, fewer once the score stalls)"
    walked("--steps", type=int, metavar="N", help=every)
    walked("--beta", type=float, metavar="B", default=BETA, help=f"the final inverse temperature (default {BETA:g})")
    stop = "stop at X times the noise level (1 without X); not with tags"
    walked("--stop-at-noise", type=float, nargs="?", const=1.0, metavar="X", help=stop)
    walked("--chains", type=int, metavar="N", default=1, help="the number of chains (default 1)")
    walked("--seed", type=int, metavar="N", default=0, help="the seed of all public randomness (default 0)")
    walked("--chunk", type=int, metavar="N", help="steps between progress reports (default: 1/50 of them)")
    kept = made.add_argument_group("output")
    kept.add_argument("--report", type=Path, metavar="FILE", help="the report (default: OUT.json)")
    kept.add_argument("--folder", type=Path, metavar="FOLDER", help="for answers and checkpoints (default: OUT.run)")
    kept.add_argument("--resume", action="store_true", help="resume the run in the folder with its original options")
    kept.add_argument("--plots", type=Path, metavar="FOLDER", help="a folder for plots of the graph and the chains")
    kept.add_argument("--quiet", action="store_true", help="no progress on stderr")
    once = [each for each in made._actions if each.dest == "graph" or each.container in (measurement, fitting)]
    made.set_defaults(command=run, once=once)


def run(options: argparse.Namespace) -> None:
    """The command."""
    arguments.check_stdout()
    folder = options.folder or arguments.beside(options.out, ".run")
    report_file = options.report or arguments.beside(options.out, ".json")
    written = [options.out, report_file]
    for place in written:
        arguments.check_writable(place)
    arguments.check_distinct(written, [options.graph, options.ledger, options.nodes])
    modules: dict[str, Any] = sys.modules  # without matplotlib, which it would load for plots, igraph takes a tenth
    plots = modules.setdefault("matplotlib", None)
    try:
        import_igraph()  # before anything is spent
    finally:
        if plots is None:
            del modules["matplotlib"]
    if options.plots is not None:
        axes_or_new(None)
    try:
        method, settings, answers, nodes = (_resumed if options.resume else _measured)(options, folder)
        on_update = None if options.quiet else ChainBars()
        graph = fit.fit_graph(
            answers,
            method,
            settings,
            nodes=nodes,
            checkpoints=folder,
            on_update=on_update,
            on_uncertainty=_print_intervals,
        )
    except KeyboardInterrupt:
        if on := _how_to_go_on(options, folder):
            raise arguments.Interrupted(f"interrupted; debits are not refunded. {on}") from None
        raise
    except OSError as error:
        if not fit.holds_answers(folder):
            raise  # nothing was measured, so nothing is spent
        kept = f"the answers in {folder} are paid for. {_how_to_go_on(options, folder)}"
        raise arguments.unwritten(error, kept) from None
    try:
        _write(graph, options, report_file)
    except OSError as error:
        raise arguments.unwritten(error, f"the graph is in {options.out}, and the report in {report_file}") from None


def _how_to_go_on(options: argparse.Namespace, folder: Path) -> str:
    """How a run that ended goes on: fitting resumes, and a ledger repeats measurements."""
    if not fit.holds_run(folder):
        return "The same command repeats paid answers at no cost" if options.data_version else ""
    again = ["wpinq", "synthesize", "--resume", "--folder", str(folder), "--out", str(options.out)]
    return f"Resume with: {shlex.join(again)}"


#: The method, the settings, the answers and the public nodes.
_Run = tuple[Method, Settings, dict[str, Answers], PublicNodes | None]


def _resumed(options: argparse.Namespace, folder: Path) -> _Run:
    once = [each for each in options.once if getattr(options, each.dest) != each.default]
    given = [(*action.option_strings, "FILE")[0] for action in once]
    if given:
        raise UsageError(f"--resume uses the original options of the run: leave out {', '.join(given)}")
    return fit.load_run(folder)


def _measured(options: argparse.Namespace, folder: Path) -> _Run:
    """The answers of the graph, saved in the folder as they come, and what to make of them."""
    if options.graph is None or options.epsilon is None:
        raise UsageError("give FILE and --epsilon, or --resume")
    arguments.check_readable(options.graph)
    if options.columns is None and has_columns(options.graph):
        raise UsageError("this file has named columns: name those of an edge with --columns ONE,OTHER")
    notice = arguments.ledger_notice(options)
    if fit.holds_run(folder):
        raise UsageError(f"{folder} holds a run: resume it with --resume, or name another --folder")
    if fit.holds_answers(folder) and (options.data_version is None or arguments.is_new(options.ledger)):
        raise UsageError(
            f"{folder} holds answers that were paid for, and no ledger repeats them here: name another --folder, or "
            "give the --ledger and --data-version that they were measured with"
        )
    noise, chunk = options.stop_at_noise, options.chunk
    settings = Settings(options.steps, options.beta, options.chains, options.seed, chunk, stop_at_noise=noise)
    if options.directed and options.query not in (DEFAULT_METHOD, DIRECTED):
        raise UsageError("--directed has queries of its own: leave out --query")
    query = DIRECTED if options.directed else options.query
    method = find_method(query)
    method.check(settings)
    columns = None if options.columns is None else edge_columns(options.columns, options.graph, "--columns")
    split = arguments.pairs(options.share or [], "--share") or None
    node, nodes = {"int": int, "str": str}[options.node], None
    if options.nodes is not None:
        arguments.check_readable(options.nodes)
        if options.nodes.samefile(options.graph):
            raise UsageError("--nodes is a list from public knowledge, never the protected graph: name another file")
        nodes = read_nodes(options.nodes, node, options.label)
    elif options.label is not None:
        raise UsageError("--label names a column of the file of public nodes: give --nodes FILE")

    by_edges = f"{STEPS_PER_EDGE} steps per edge of the seed graph, at most {MOST_STEPS:,}, fewer once the score stalls"
    steps = by_edges if settings.steps is None else f"{settings.steps:,} steps"
    chains = "one chain of" if settings.chains == 1 else f"{settings.chains} chains, each of"

    def on_bill(bill: Bill) -> None:
        print(f"The bill:\n{bill}\n\nThen {chains} {steps}.\n", flush=True)
        asked = {label.partition(":")[0] for label, _ in bill.listed}
        for name in () if split else [name for name in method.shares if name not in asked]:
            print(f"Skipped: {name}, because its value in a graph of so few nodes cannot exceed the noise.\n")
        if notice:
            arguments.tell(notice)

    fit.prepare_folder(folder)
    answers = measure_graph(
        EdgeList(options.graph, columns=columns, comments=options.comments),
        method,
        options.epsilon,
        node=node,
        nodes=nodes,
        split=split,
        bounds=Bounds(options.max_nodes, options.max_degree),
        ledger=options.ledger,
        budget=options.budget,
        version=options.data_version,
        engine=options.engine,
        on_bill=on_bill,
        on_answers=partial(fit.save_answers, folder),
    )
    fit.save_run(folder, query, settings, answers, nodes)
    print(f"Measurement complete; the graph is no longer read. Answers are in {folder}", flush=True)
    return method, settings, answers, nodes


def _write(graph: fit.SyntheticGraph, options: argparse.Namespace, report_file: Path) -> None:
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
    if warned := warning(graph.uncertainty):
        print(warned)
    print(f"Wrote {options.out} and {report_file}", flush=True)


def _print_intervals(uncertainty: Mapping[str, Interval]) -> None:
    """What the answers tell, before there is a graph that could be used."""
    print("Intervals for the secret graph, from the answers alone:")
    for name in dict.fromkeys([*fit.ALL_STATISTICS, *uncertainty]):
        print(f"  {name.replace('_', ' ')}: {phrase(uncertainty.get(name))}")
    if warned := warning(uncertainty):
        print(warned)
    print(flush=True)
