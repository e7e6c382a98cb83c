"""A daily release of page views by a threshold over all keys, and a year of running totals.

    python benchmarks/series.py [--rows 300000] [--days 3] [--pages 1250000] [--memory 3GB] [--year-rows 20]

The shape is that of a public release of views by page, with a user-day as the unit: Zipf pages, `--pages` public keys,
at most 10 distinct pages a user and day, ε = 1 a user-day, pure. A threshold of 10 · ln(pages) lets half a false key
through, a day. Each part runs in a process of its own; seconds are of the processor. "plain" is DuckDB that scans, cuts
and groups the same files, without ids, checks or noise. "(ε, δ)" is noise of Gauss on the pages that are there, with a
threshold, at δ = 1e-7: it is computed here alone, without a ledger. Published shares are of the views after the cut.

The large run: --rows 10000000 --days 30 --pages 125000000.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import wpinq as wp

START = datetime.date(2026, 1, 1)
AT_MOST, EPSILON, DELTA = 10, 1, 1e-7
_CUT = (
    "SELECT user_id, page FROM (SELECT DISTINCT user_id, page FROM '{}' WHERE day = DATE '{}') "
    "QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY hash(page)) <= 10"
)


def label(day: int) -> str:
    """The epoch of a day."""
    return (START + datetime.timedelta(day)).isoformat()


def make(folder: Path, options: argparse.Namespace) -> None:
    """One parquet file a day; a hundredth of its rows is of the day before."""
    for day in range(options.days):
        rng, rows = np.random.default_rng(day), options.rows
        # Zipf of exponent 1 over the pages, by the inverse of its continuous law; the numbers of pages are mixed
        rank = np.exp(rng.random(rows) * math.log(options.pages)).astype(np.int64)
        page, user = rank * 48_271 % options.pages, rng.integers(0, max(1, rows // 6), rows)
        late = rng.random(rows) < 0.01
        with duckdb.connect() as connection:
            connection.register("made", {"page": page, "user_id": user, "late": late})
            day_of = f"DATE '{label(day)}' - late::INTEGER"
            columns = f"user_id, page, ({day_of})::DATE AS day"
            connection.execute(f"COPY (SELECT {columns} FROM made) TO '{folder / label(day)}.parquet'")


def views() -> Any:
    """The series."""
    return wp.series(
        "views",
        every="day",
        start=START.isoformat(),
        on="day",
        page=int,
        day=datetime.date,
        person="user_id",
        at_most=AT_MOST,
        distinct="page",
        budget_each=EPSILON,
        budget_all=365 * EPSILON,
    )


def published(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Each day protected and released, under budgets."""
    series, found = views(), {"seconds": [], "answers": []}
    threshold = AT_MOST / EPSILON * math.log(options.pages)
    with wp.Session(folder / "views.db", memory_limit=options.memory, threads=2) as session:
        for day in range(options.days):
            began = time.process_time()
            session.protect(series, folder / f"{label(day)}.parquet", epoch=label(day), version="1")
            pages = series.epoch(label(day)).select(lambda v: v.page)
            keys = wp.integers(0, options.pages - 1)
            asked = pages.noisy_count_above(f"{EPSILON}/{AT_MOST}", keys, above=threshold)
            answers = session.release(asked)
            found["seconds"].append(time.process_time() - began)
            found["answers"].append(dict(zip(map(int, answers.keys), map(float, answers.values), strict=True)))
        found["spent"] = {
            "an epoch": str(session.spent(f"views:{label(0)}")),
            "one person": str(session.spent(series, over="person")),
        }
    found["threshold"] = threshold
    return found


def plain(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """DuckDB's own scan, cut and group; its counts are the truth up to the choice of the cut."""
    found: dict[str, Any] = {"seconds": []}
    with duckdb.connect(config={"memory_limit": options.memory, "threads": 2}) as connection:
        for day in range(options.days):
            began = time.process_time()
            cut = _CUT.format(folder / f"{label(day)}.parquet", label(day))
            counts = f"SELECT page, count(*) AS n FROM ({cut}) GROUP BY page"
            connection.execute(f"CREATE OR REPLACE TABLE day{day} AS {counts}")
            found["seconds"].append(time.process_time() - began)
            connection.execute(f"COPY day{day} TO '{folder / f'truth{day}.parquet'}'")
    return found


def gaussian(days: int, folder: Path) -> list[dict[int, float]]:
    """The (ε, δ) way: half of δ for the noise of Gauss, calibrated exactly, and half for the threshold."""
    half, reach = DELTA / 2, math.sqrt(AT_MOST)

    def loss(sigma: float) -> float:
        at, ratio = EPSILON * sigma / reach, reach / (2 * sigma)
        return float(norm.cdf(ratio - at) - math.exp(EPSILON) * norm.cdf(-ratio - at)) - half

    sigma = brentq(loss, 0.1, 1000)
    threshold = 1 + sigma * norm.isf(-math.expm1(math.log1p(-half) / AT_MOST))
    print(f"(ε, δ): noise of deviation {sigma:.1f} on pages that are there, threshold {threshold:.0f}")
    found = []
    for day in range(days):
        pages, counts = _truth(folder, day)
        noisy = counts + np.random.default_rng(day).normal(0, sigma, len(counts))
        shown = noisy > threshold
        found.append(dict(zip(pages[shown].tolist(), noisy[shown].tolist(), strict=True)))
    return found


def _truth(folder: Path, day: int) -> tuple[Any, Any]:
    rows = duckdb.sql(f"SELECT page, n FROM '{folder / f'truth{day}.parquet'}'").fetchnumpy()
    return rows["page"], rows["n"]


def shown(title: str, answers: list[dict[int, float]], folder: Path) -> None:
    """The share of views that is published, and the median relative error of published pages."""
    shares, errors, false = [], [], 0
    for day, noisy in enumerate(answers):
        truth = dict(zip(*(column.tolist() for column in _truth(folder, day)), strict=True))
        known = [page for page in noisy if page in truth]
        false += len(noisy) - len(known)
        shares.append(sum(truth[page] for page in known) / sum(truth.values()))
        errors += [abs(noisy[page] - truth[page]) / truth[page] for page in known]
    keys = sum(map(len, answers)) / len(answers)
    print(
        f"{title:8} {np.mean(shares):6.1%} of views, {keys:,.0f} pages a day, median relative error "
        f"{np.median(errors) if errors else math.nan:.2%}, {false} pages without a view"
    )


def year(options: argparse.Namespace) -> dict[str, Any]:
    """A year of running totals of rows at ε = 1 an epoch in nine levels."""
    series = wp.series("rows", every="day", start=START.isoformat(), on="day", day=datetime.date, budget_each=1)
    total = series.running(lambda day: day.select(lambda row: "rows"), "1/9", keys=["rows"], levels=9)
    deviations, errors, answers = [], [], {}
    with wp.Session(threads=2) as session:
        for day in range(365):
            rows = [(START + datetime.timedelta(day),)] * options.year_rows
            session.protect(series, rows, epoch=label(day), version="1")
            answers |= session.release(total.due(label(day)))
            found = total.total(label(day), answers)
            deviations.append(found.deviation)
            errors.append(float(found.values[0]) - (day + 1) * options.year_rows)
        spent = {str(session.spent(f"rows:{label(day)}")) for day in range(365)}
    return {"largest": max(deviations), "mean": float(np.mean(deviations)), "error": errors, "spent": sorted(spent)}


def run(part: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One part, in this process."""
    began = time.process_time()
    found = {"published": published, "plain": plain}[part](folder, options) if part != "year" else year(options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found | {"peak GB": peak, "all seconds": time.process_time() - began}


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000, help="rows a day")
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--pages", type=int, default=1_250_000, help="public keys")
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--year-rows", type=int, default=20, help="rows a day of the running totals; 0 leaves them out")
    parser.add_argument("--part", choices=["plain", "published", "year"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(run(options.part, options.folder, options)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options)
        parts = {}
        for part in ("plain", "published", *(["year"] if options.year_rows else [])):
            again = [sys.executable, __file__, "--part", part, "--folder", name, *sys.argv[1:]]
            made = subprocess.run(again, stdout=subprocess.PIPE, text=True, check=True)
            parts[part] = json.loads(made.stdout)
        ours, theirs = parts["published"], parts["plain"]
        times = [one / other for one, other in zip(ours["seconds"], theirs["seconds"], strict=True)]
        print(f"{options.rows:,} rows a day, {options.days} days, {options.pages:,} public pages")
        print(f"a day: {np.mean(ours['seconds']):.2f} s, plain {np.mean(theirs['seconds']):.2f} s; times", end=" ")
        print(f"{np.median(times):.2f} (largest {max(times):.2f}); peak {ours['peak GB']:.2f} GB")
        print(f"spent: {ours['spent']}; threshold {ours['threshold']:.0f}")
        answers = [{int(page): number for page, number in day.items()} for day in ours["answers"]]
        shown("pure", answers, folder)
        shown("(ε, δ)", gaussian(options.days, folder), folder)
    if "year" in parts:
        found = parts["year"]
        rms = math.sqrt(float(np.mean(np.square(found["error"]))))
        print(
            f"a year: deviation {found['mean']:.1f} in the mean, {found['largest']:.1f} at most; error {rms:.1f}",
            end="",
        )
        print(f" (root mean square); spent by epoch {', '.join(found['spent'])}; {found['all seconds']:.0f} s")


if __name__ == "__main__":
    main()
