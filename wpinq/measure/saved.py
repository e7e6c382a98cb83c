"""What was released, in JSON files: written, read, and refused where a file holds something else."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from wpinq.errors import AnswersError, WpinqError


class Saved(ABC):
    """What can be saved, and read again: it holds nothing that was not released."""

    __slots__ = ()
    saved_as: ClassVar[str]
    """What a file of these holds, in words."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, for `from_json`."""

    @classmethod
    @abstractmethod
    def _read(cls, data: Any) -> Self:
        """From plain data; any error where they are others."""

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """What plain data of `to_json` hold, checked; AnswersError when they hold something else."""
        try:
            return cls._read(data)
        except WpinqError as reason:
            message = str(reason)
        except Exception:  # data of another make can fail in any way, deep in types and plans
            message = f"these data do not hold {cls.saved_as}"
        raise AnswersError(message)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it, with its plan, to a JSON file, from which `load` reads it."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; AnswersError when the file holds something else."""
        named = os.fspath(path)
        if "://" in named:
            raise AnswersError(f"{named} is an address, not the path of a file: fetch it, and load the file")
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise AnswersError(f"{named} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise AnswersError(f"{named} cannot be read as JSON: load what {cls.__name__}.save(path) wrote") from None
        return cls.from_json(data)
