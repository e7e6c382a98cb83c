"""Text programs in the notation of the paper, read into plans and written back."""

from wpinq.language.program import Program, parse
from wpinq.language.write import unparse

__all__ = ["Program", "parse", "unparse"]
