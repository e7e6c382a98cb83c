"""Limits: what one asking of an analyst who is not trusted may take, and what is held back beside it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from wpinq.errors import SessionError

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])B", re.IGNORECASE)
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one asking may take in untrusted mode. Public, and chosen without looking at the data.

    Parameters
    ----------
    seconds : float
        The longest that one asking is held: a plan whose bound asks for more is refused before the debit.
    memory : str
        The most that the child process of an asking may be granted, "2GB".
    record : int
        The most code points and elements of lists that one record may hold in any one field; data with more are refused
        when they are protected.
    margin : float
        How many times the time is granted that the worst data took, within a plan's bound, on the machine of the
        measurements: more for a slower machine, or one whose cores are not the service's own.
    settling : float
        Seconds after a child's time is up, in which answers are stored or a source is closed; a part of `seconds`.

    Examples
    --------
    >>> import wpinq as wp
    >>> wp.Limits(seconds=30, memory="1GB")
    Limits(seconds=30, memory='1GB', record=1000, margin=3.0, settling=1.0)
    """

    seconds: float = 60.0
    memory: str = "2GB"
    record: int = 1000
    margin: float = 3.0
    settling: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.0), ("margin", 1.0), ("settling", 0.0)):
            number = getattr(self, name)
            if type(number) not in (int, float) or not (math.isfinite(number) and number >= least and number > 0):
                raise SessionError(f"Limits: {name} is a number above {least:g}, not {number!r}")
        if type(self.record) is not int or self.record < 1:
            raise SessionError(f"Limits: record is a whole number of at least 1, not {self.record!r}")
        if not isinstance(self.memory, str) or _MEMORY.fullmatch(self.memory.strip()) is None:
            raise SessionError(f'Limits: memory is a text such as "2GB" or "500MB", not {self.memory!r}')

    @property
    def bytes(self) -> int:
        """The memory as a number of bytes."""
        found = _MEMORY.fullmatch(self.memory.strip())
        assert found is not None
        return int(float(found[1]) * _UNITS[found[2].upper()])
