"""Text programs in the notation of the paper, read into plans and written back."""

from wpinq.language.program import Program as Program, parse as parse
from wpinq.language.write import unparse as unparse
