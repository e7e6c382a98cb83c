"""Where intermediate results go that do not fit in memory: files without a name, which end with their process.

DuckDB would name the files that it spills to and write records into them in clear: whoever may read the folder, or
finds it after `kill -9`, reads them. It encrypts them only with an extension that has to be downloaded. So it is given
a file system here, which it calls instead of the operating system's, and on which what it takes for a file of some
name is one that has none: `tempfile.TemporaryFile` makes it unlinked where the operating system can (O_TMPFILE),
elsewhere it unlinks it before anything is written; nobody but its owner may open it (mode 0600), and nothing is left
of it once the process ends, however it ends.

Threads of DuckDB wait for Python's global lock here while they hold DuckDB's own. So a statement that holds the global
lock while it asks DuckDB for memory must not have other threads: see `connection`.
"""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
import threading
from typing import IO

from fsspec import AbstractFileSystem

_SHARE_OF_DISK = 0.9
"""Of what is free when a database opens: as DuckDB has it by default for a folder."""


class SpillFiles(AbstractFileSystem):  # type: ignore[misc]
    """The nameless files of one DuckDB, by the names that it knows them by. It calls what is defined here, and no more.

    Raises
    ------
    OSError
        Where no folder for temporary files can be written.
    """

    protocol = "wpinq-spill"
    cachable = False  # fsspec would give all databases the same one
    path = f"{protocol}://files"

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.gettempdir()
        self._files: dict[str, IO[bytes]] = {}

    @property
    def limit(self) -> str:
        """How much DuckDB may spill, as it reads sizes."""
        return f"{int(shutil.disk_usage(self._folder).free * _SHARE_OF_DISK)}B"

    def close(self) -> None:
        """Let go of all files, and so of what is in them."""
        for name in list(self._files):
            self.rm(name)

    def open(self, path: str, mode: str) -> _Opened:
        """The file of a name; a new one where there is none, unless it is only to be read."""
        if mode.startswith("w"):
            self.rm(path)
        if path not in self._files:
            if mode == "rb":
                raise FileNotFoundError(path)
            self._files[path] = tempfile.TemporaryFile(buffering=0, dir=self._folder)  # noqa: SIM115
        return _Opened(self._files[path].fileno())

    def rm(self, path: str, recursive: bool = False) -> None:
        """Let go of a file, if it is there: DuckDB would not survive an error when it closes."""
        file = self._files.pop(path, None)
        if file is not None:
            file.close()

    def ls(self, path: str) -> list[dict[str, str]]:
        """The files there are, without the folder's path, as DuckDB lists those of the operating system."""
        return [{"name": name.rpartition("/")[2], "type": "file"} for name in list(self._files)]

    def isfile(self, path: str) -> bool:
        """Whether there is a file of this name."""
        return path in self._files

    def isdir(self, path: str) -> bool:
        """There is one folder, always."""
        return True

    def size(self, path: str) -> int:
        """In bytes."""
        return os.fstat(self._files[path].fileno()).st_size

    def modified(self, path: str) -> datetime.datetime:
        """DuckDB asks it of every file that it opens, and makes no use of it for spilled ones."""
        return datetime.datetime.fromtimestamp(0, datetime.UTC)

    def touch(self, path: str, truncate: bool = True) -> None:
        """DuckDB tells that the end of a file is free, not from where on: it stays, and is written again."""


class _Opened:
    """A file as DuckDB holds it. It seeks before each reading and writing, of which several threads have one under way.

    Closing it is nothing, for DuckDB opens it again by its name.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._places: dict[int, int] = {}

    def seek(self, place: int) -> int:
        self._places[threading.get_ident()] = place
        return place

    def read(self, size: int) -> bytes:
        return os.pread(self._number, size, self._places.pop(threading.get_ident()))

    def write(self, data: bytes) -> int:
        place, left = self._places.pop(threading.get_ident()), memoryview(data)
        while left:
            written = os.pwrite(self._number, left, place)
            place, left = place + written, left[written:]
        return len(data)

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """The file stays, until it is removed by its name."""
