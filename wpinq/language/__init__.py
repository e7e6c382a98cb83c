"""Text programs: the notation of the paper, read into the same plans as fluent chains, and written back."""

from wpinq.language.program import Program, parse
from wpinq.language.write import unparse

__all__ = ["Program", "parse", "unparse"]
