"""Text programs: the notation of the paper, read into the same plans as fluent chains, and written back."""

from wpinq.language.parse import parse
from wpinq.language.program import Program
from wpinq.language.unparse import unparse

__all__ = ["Program", "parse", "unparse"]
