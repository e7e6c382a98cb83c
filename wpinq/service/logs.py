"""The log: one line of JSON an event, without data, tokens, programs, labels, addresses of clients, or durations."""

from __future__ import annotations

import contextlib
import json
import sys
from datetime import UTC, datetime


def log(event: str, **what: str | int) -> None:
    """Write a line to stderr, if anybody listens."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **what}
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(json.dumps(line) + "\n")
        sys.stderr.flush()
