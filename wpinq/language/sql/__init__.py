"""SQL read into the same plans as chains and text programs: sqlglot parses, and we lower."""

from importlib.util import find_spec

from wpinq.errors import LanguageError, install

if find_spec("sqlglot") is None:
    raise LanguageError(f"SQL needs sqlglot: {install('sql')}")
