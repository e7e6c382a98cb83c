"""Checkpoints: a chain in a file, from which it continues exactly as it would have.

A file is replaced as a whole, or not at all. It holds what is public: a candidate, a trace, random numbers.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wpinq.errors import WpinqError
from wpinq.mcmc.chain import ChainState
from wpinq.mcmc.trace import Trace

FORMAT, FORMAT_VERSION = "wpinq chain", 1
_HEADER, _STATE = "header", "state."


class CheckpointError(WpinqError):
    """A checkpoint cannot be read or written, or is of another run."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file of one chain.

    Attributes
    ----------
    path : Path
        The file; its folder is there.
    digest : str
        What tells the run from others: settings, answers, where it began. A file of another is refused.
    total : int
        The steps that the chain does in all.
    """

    path: Path
    digest: str
    total: int

    def store(self, state: ChainState, trace: Trace) -> None:
        """Replace the file; when this returns, the new one is on the disk."""
        known = {"digest": self.digest, "steps": self.total, "trace": trace.to_json()}
        header = {"format": FORMAT, "version": FORMAT_VERSION, **known}
        packed = io.BytesIO()
        arrays: dict[str, Any] = {_STATE + name: array for name, array in state.items()}
        arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        np.savez(packed, **arrays)
        write_atomically(self.path, packed.getvalue())

    def load(self) -> tuple[ChainState, Trace] | None:
        """What was stored last, or None.

        Raises
        ------
        CheckpointError
            When the file is not of this run, or damaged.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise CheckpointError(f"{self.path} cannot be read") from None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                header = json.loads(arrays[_HEADER].tobytes().decode())
                state = {name.removeprefix(_STATE): arrays[name] for name in arrays.files if name != _HEADER}
            kind = header["format"], header["version"]
            digest, trace = header["digest"], Trace.from_json(header["trace"])
        except Exception:  # a damaged file fails in many ways, in zip, numpy and json
            raise CheckpointError(f"{self.path} is damaged, or no checkpoint: remove it to begin anew") from None
        if kind != (FORMAT, FORMAT_VERSION):
            raise CheckpointError(f"{self.path} was written by another version: remove it to begin anew")
        if digest != self.digest:
            raise CheckpointError(
                f"{self.path} is of a run with other settings or answers: give those, or another folder"
            )
        return state, trace


def make_folder(path: Path) -> None:
    """Make a folder that only its owner can open, and those above it, where it is not there yet.

    Raises
    ------
    CheckpointError
        When it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        raise CheckpointError(f"cannot make the folder {path}: name one that can be written to") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it finds the old content or the new one, even after a crash.

    Raises
    ------
    CheckpointError
        When it cannot be written; the old file stands.
    """
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        with contextlib.suppress(OSError):  # some systems cannot open a folder; the file itself is safe
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise CheckpointError(f"cannot write {path}: name a folder that can be written to") from None
