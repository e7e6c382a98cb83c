"""Generated functions as text, and those that put records in tables and take them out."""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.engines.incremental.compiled.tables import Table


def numbered(prefix: str, size: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(size)]


def function(name: str, arguments: Sequence[str], lines: Sequence[str]) -> str:
    return "\n".join(["@njit", f"def {name}({', '.join(['A', *arguments])}):", *(lines or ["    pass"])])


def insertion(table: Table) -> str:
    words = numbered("x", table.width)
    lines = [
        f"    row = insert_{table.width}(A, {table.name}, {', '.join(words)})",
        "    if row == 0:",
        "        return 0",
        f"    put(A, row_at(A, {table.name}, row) + {table.width}, as_word(new))",
    ]
    for columns, index, at in table.indexes:
        key = ", ".join(words[i] for i in columns)
        lines += [
            f"    entry = find_{index.width}(A, {index.name}, {key})",
            "    if entry == 0:",
            f"        entry = insert_{index.width}(A, {index.name}, {key})",
            "        if entry == 0:",
            "            return 0",
            f"        put(A, row_at(A, {index.name}, entry) + {index.width}, 0)",
            f"    link(A, {table.name}, row, {at}, {index.name}, entry, {index.width})",
        ]
    return function(f"insert_{table.name}", [*words, "new"], [*lines, "    return row"])


def removal(table: Table) -> str:
    words = numbered("x", table.width)
    lines = []
    for columns, index, at in table.indexes:
        key = ", ".join(words[i] for i in columns)
        lines += [
            f"    entry = find_{index.width}(A, {index.name}, {key})",
            f"    if unlink(A, {table.name}, row, {at}, {index.name}, entry, {index.width}):",
            f"        remove(A, {index.name}, hash_{index.width}({key}), entry)",
        ]
    lines.append(f"    remove(A, {table.name}, hash_{table.width}({', '.join(words)}), row)")
    return function(f"remove_{table.name}", [*words, "row"], lines)
