"""Answers as a text table."""

from __future__ import annotations

from wpinq.display.plots import STAMP
from wpinq.expr.printing import write_value
from wpinq.measure.answers import Answers
from wpinq.measure.epsilon import format_epsilon
from wpinq.measure.measurement import Choose, NoisyAverage
from wpinq.measure.subgraph_counts import SubgraphCount

CONFIDENCE = 0.95


def answers_table(name: str, answers: Answers, rows: int = 20) -> str:
    """The answers with their intervals, as text.

    Parameters
    ----------
    name : str
        The title.
    answers : Answers
        What to show.
    rows : int
        The most rows to show, 0 for all; how many are left out is said.
    """
    sink = answers.measurement.sink
    title = f"{name}: {sink.name}({format_epsilon(answers.epsilon)})"
    if answers.simulated:
        title += f", {STAMP}"
    if isinstance(sink, Choose):
        return f"{title}\n  chosen: {write_value(answers.value)}"
    if isinstance(sink, NoisyAverage):
        low, high = answers.value_interval(CONFIDENCE)
        return f"{title}\n  average: {answers.value:.6g}, 95 % interval {low:.6g} to {high:.6g}"
    if isinstance(sink, SubgraphCount):
        if sink.interval_share is None:
            return f"{title}\n  count: {answers.value:.0f}, and no interval was bought (interval_share)"
        low, high = answers.value_interval(CONFIDENCE)
        return f"{title}\n  count: {answers.value:.0f}, 95 % interval {low:.0f} to {high:.0f}"
    shown = answers.keys if rows == 0 else answers.keys[:rows]
    cells = [("key", "noisy weight", "95 % interval")]
    for key in shown:
        low, high = answers.interval(key, CONFIDENCE)
        cells.append((write_value(key), f"{answers[key]:.2f}", f"{low:.2f} to {high:.2f}"))
    widths = [max(len(row[i]) for row in cells) for i in range(3)]
    lines = [title] + [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in cells]
    if len(shown) < len(answers):
        lines.append(f"  … {len(answers) - len(shown)} more keys: --rows 0 prints all, --json and --save keep all")
    if answers.listing is not None:
        lines.append(f"  {answers.listing.words}; the intervals hold given that")
    if answers.measurement.reading:
        lines.append(f"  Reading: {answers.measurement.reading}")
    return "\n".join(lines)
