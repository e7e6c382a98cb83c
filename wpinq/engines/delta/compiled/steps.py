"""Steps over columns: what the compiled engine generates code from. See `plans`, which makes them of plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wpinq.engines.incremental.compiled.steps.groups import Group
from wpinq.engines.incremental.compiled.words.code import Writer
from wpinq.engines.incremental.compiled.words.encoding import Dictionary
from wpinq.plan.node import Node

EmitRecord = Callable[[Sequence[str], str], None]
"""Takes the words of an output record and the code of its weight, and writes what is done with them."""

WriteLoop = Callable[[Writer, Sequence[str], str, EmitRecord], None]


@dataclass(frozen=True, slots=True)
class Image:
    """One output of a record: what writes its words, and its share of the record's weight."""

    words: Callable[[Writer, Sequence[str]], list[str]]
    share: float


@dataclass(eq=False)
class Step:
    """One step: its number, what it is called in messages, the words of its records, and its inputs."""

    number: int
    name: str
    width: int
    inputs: tuple[Step, ...]


@dataclass(eq=False)
class SourceStep(Step):
    """The candidate itself."""

    source: str


@dataclass(eq=False)
class MapStep(Step):
    """Linear in the weights: each record gives outputs of its own.

    A filter has a condition, and keeps its records; a permutation says which input word each output word is. `images`
    are the outputs of a record, where every record has as many, of the same shares of its weight. Any other step has
    `loop(writer, words, weight, sink)`, which writes what passes a record's outputs to the sink. `scratch` is the table
    in which outputs of a record, of weights of any sign, are added up before their norm is taken.
    """

    condition: Callable[[Writer, Sequence[str]], str] | None = None
    permutation: tuple[int, ...] | None = None
    scratch: str | None = None
    images: tuple[Image, ...] = ()
    loop: WriteLoop | None = None


@dataclass(eq=False)
class SumStep(Step):
    """Inputs added with coefficients."""

    coefficients: tuple[int, ...]


@dataclass(eq=False)
class JoinStep(Step):
    """Pairs by key. `write(writer, left words, right words)` gives the output's words."""

    keys: tuple[tuple[int, ...], tuple[int, ...]]
    write: Callable[[Writer, Sequence[str], Sequence[str]], list[str]]
    permutation: tuple[int, ...] | None = None


@dataclass(eq=False)
class ExtremeStep(Step):
    """The smaller or the larger weight."""

    smaller: bool


@dataclass(eq=False)
class ShaveStep(Step):
    """Pieces. `widths` writes the loop over the widths of a record; None for a constant width."""

    constant: float
    limit: int | None
    loop: Callable[[Writer, Sequence[str], Callable[[str, str], None]], None] | None


@dataclass(eq=False)
class GroupStep(Step):
    """Prefixes of the records of a key, reduced. The key's words come first in the output."""

    key: tuple[int, ...]
    group: Callable[[Writer, Sequence[str]], Group]


@dataclass
class Steps:
    """The steps of several plans, inputs before users, the step of each plan, and a plan of each step that has one."""

    dictionary: Dictionary
    all: list[Step] = field(default_factory=list)
    roots: list[Step] = field(default_factory=list)
    nodes: dict[Step, Node] = field(default_factory=dict)

    def add(self, kind: type[Step], name: str, width: int, inputs: tuple[Step, ...], **arguments: Any) -> Step:
        """A further step."""
        step = kind(len(self.all), name, width, inputs, **arguments)
        self.all.append(step)
        return step
