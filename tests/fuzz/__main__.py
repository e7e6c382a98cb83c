"""`python -m tests.fuzz TARGET (--examples N | --minutes M)`: see the package."""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

MEMORY = 6 << 30
"""Of address space: the engine alone reserves two gigabytes."""

PROCESSOR_SECONDS, MEGABYTES = 60, 4096
"""For one example with atheris, after which it counts as a hang, or as without measure."""

SEEDS, LONGEST = 100, 2000
"""Of what atheris begins with: how many, and the bytes of the longest."""


def main() -> int:
    """Fuzz one target; the status is not 0 where a fault was found."""
    options = _options()
    if options.minutes is not None:
        try:
            import atheris
        except ImportError:
            print("--minutes needs atheris, which this Python does not have: pip install atheris", file=sys.stderr)
            return 2
        with atheris.instrument_imports(include=["wpinq"]):
            import wpinq  # noqa: F401  for its branches to be counted
            from tests.fuzz.targets import TARGETS
        _led_by_branches(atheris, TARGETS[options.target], options)
        return 0
    from tests.fuzz.targets import TARGETS

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seconds = 120 + options.examples * 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    _tested(TARGETS[options.target], options.examples, options.seed)()
    print(f"{options.target}: {options.examples} examples, nothing but what they mean or an error that explains")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("target")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--examples", type=int)
    how.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", default=None, help="a folder for what reached new branches")
    parser.add_argument("--go-on", action="store_true", help="print each new fault, and go on")
    return parser.parse_args()


def _tested(target: Any, examples: int, seed: int) -> Any:
    """A test of hypothesis, of the same examples in every run."""
    from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

    @seeded(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )
    @given(target.examples())
    def tested(example: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(example)

    return tested


def _led_by_branches(atheris: Any, target: Any, options: argparse.Namespace) -> None:
    """libFuzzer changes the bytes from which hypothesis draws examples."""
    run = _tested(target, 1, options.seed).hypothesis.fuzz_one_input
    known: set[str] = set()

    def one(data: bytes) -> None:
        try:
            run(data)
        except Exception as error:
            if not options.go_on:
                raise
            frames = traceback.extract_tb(error.__traceback__)
            place = (
                f"{type(error).__name__} {[f'{f.filename}:{f.lineno}' for f in frames if '/wpinq/' in f.filename][-2:]}"
            )
            if place not in known:
                known.add(place)
                print("\n=== FAULT", place, flush=True)
                traceback.print_exc()
                sys.stderr.flush()

    # An example needs as many bytes as it has choices: of a few bytes, which libFuzzer begins with, none is made.
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(options.corpus or folder)
        chance = random.Random(options.seed)
        for number in range(SEEDS):
            (corpus / f"seed-{number}").write_bytes(chance.randbytes(chance.choice([200, 600, LONGEST])))
        limits = [
            f"-timeout={PROCESSOR_SECONDS}",
            f"-rss_limit_mb={MEGABYTES}",
            f"-max_len={LONGEST}",
            "-len_control=0",
        ]
        seconds = int(options.minutes * 60)
        atheris.Setup(
            [sys.argv[0], f"-max_total_time={seconds}", *limits, f"-artifact_prefix={corpus}/fault-", str(corpus)], one
        )
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
