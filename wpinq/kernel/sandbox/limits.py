"""Limits of the sandbox: time and memory of one release, and the time kept for its end."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from wpinq.errors import SessionError, described

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])B", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a release in untrusted mode; they are public.

    Parameters
    ----------
    seconds : float
        The longest time of one release; a plan with a higher bound is refused before the debit.
    memory : str
        The most memory of a child process, such as "2GB".
    max_record_bytes : int
        The most code points of a text, or of a list as text, in a field. `protect` refuses data with larger fields.
    safety_factor : float
        The granted time over the computed one. Raise it for a slower machine, or for one with other work.
    grace_seconds : float
        The time to store answers or to suspend a source after the end of a child; a part of `seconds`.
    require_restrictions : bool
        Whether to refuse a session on a kernel without Landlock or seccomp, which keep a child from other files,
        connections and programs. False accepts a kernel without them.

    Examples
    --------
    >>> import wpinq as wp
    >>> wp.Limits(seconds=30, memory="1GB")
    Limits(seconds=30, memory='1GB', max_record_bytes=1000, safety_factor=3.0, grace_seconds=1.0, \
require_restrictions=True)
    """

    seconds: float = 60.0
    memory: str = "2GB"
    max_record_bytes: int = 1000
    safety_factor: float = 3.0
    grace_seconds: float = 1.0
    require_restrictions: bool = True

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.0), ("safety_factor", 1.0), ("grace_seconds", 0.0)):
            number = getattr(self, name)
            if type(number) not in (int, float) or not (math.isfinite(number) and number >= least and number > 0):
                raise SessionError(f"Limits: {name} is a number above {least:g}, not {described(number)}")
        if type(self.max_record_bytes) is not int or self.max_record_bytes < 1:
            raise SessionError(f"Limits: max_record_bytes is at least 1, not {described(self.max_record_bytes)}")
        if not isinstance(self.require_restrictions, bool):
            raise SessionError("Limits: require_restrictions is True or False")
        if not isinstance(self.memory, str) or _MEMORY.fullmatch(self.memory.strip()) is None:
            raise SessionError(f'Limits: memory is a text such as "2GB" or "500MB", not {described(self.memory)}')

    @property
    def bytes(self) -> int:
        """The memory as a number of bytes."""
        found = _MEMORY.fullmatch(self.memory.strip())
        assert found is not None
        return int(float(found[1]) * 1000 ** (1 + "KMGT".index(found[2].upper())))
