"""DuckDB's progress bar, which would show shares of protected work on the screen: off."""

from __future__ import annotations

from typing import Any


def stop_progress_bar(connection: Any) -> None:
    """Turn it off, where it is on: without ipywidgets, a notebook has none, and DuckDB then refuses to set it."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
