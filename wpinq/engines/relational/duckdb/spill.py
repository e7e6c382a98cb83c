"""Where intermediate results go that do not fit in memory: a private folder that never outlives its process for long.

The folder is made with a database, readable by its owner only, and removed with it. A process that is
killed cannot remove its folder; the operating system then lets go of its lock, and the next process that opens
a database finds the folder unlocked and removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "wpinq-spill-"
_NEW = "wpinq-new-"
_LOCK = "lock"


class SpillFolder:
    """A folder for spill files, until it is removed."""

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        remove_left_behind(root)
        made = Path(tempfile.mkdtemp(prefix=_NEW, dir=root))
        self._lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # renamed once it is locked: another process, starting now, sweeps away what has this name and no lock
        self._folder = made.rename(root / f"{_PREFIX}{os.getuid()}-{made.name.removeprefix(_NEW)}")
        self.path = str(self._folder / "files")

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


def remove_left_behind(root: Path) -> None:
    """Remove the folders of this user whose process is gone."""
    for folder in root.glob(f"{_PREFIX}{os.getuid()}-*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # just being made, or just removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process lives
        finally:
            os.close(lock)
