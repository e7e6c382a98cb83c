"""Write the values anew, where a change of them is meant: `python -m tests.golden.record`."""

from __future__ import annotations

from tests.golden.values import RECORDED, found, words


def main() -> None:
    """One line a value, so that a difference shows which have changed."""
    lines = (f"{words(name)}: {words(value)}" for name, value in found().items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
