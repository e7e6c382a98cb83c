"""The parquet files of a path, a folder or a pattern: all of them, or a refusal; and the identity of files.

`Path.rglob` and `glob.glob` pass over folders that cannot be listed: a part of a table would be left out silently. Nor
do both follow links to folders. Here nothing is passed over, and links are followed.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from wpinq.errors import SourceRejected

_ENDING = ".parquet"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # Path makes one of two slashes


def missing_file(path: Path, words: str) -> SourceRejected:
    """The refusal of a path that leads to no file, in these words unless it is an address."""
    if _ADDRESS.match(str(path)):
        words = "this is an address, not the path of a file: fetch it, and offer the path"
    return SourceRejected(words)


def parquet_files(path: Path) -> list[Path] | None:
    """The parquet files that a path, a folder or a pattern means, by name; None where it means none of these.

    In a folder, what begins with a dot or an underscore is left aside, as those who write such folders do. Links to
    folders are followed. A file that several names lead to is one file, whose rows count once.

    Raises
    ------
    SourceRejected
        When there is none, or it cannot be known which: a folder inside cannot be read, or a link leads nowhere.
    """
    is_folder = os.path.isdir(path)
    if not is_folder and path.suffix.lower() != _ENDING:
        return None
    is_pattern = not is_folder and glob.has_magic(str(path)) and not os.path.exists(path)
    if not is_folder and not is_pattern:
        return [path]
    try:
        return _each_once(_matching(path) if is_pattern else _inside(path, path))
    except (FileNotFoundError, NotADirectoryError):
        refusal = f"a link inside {path} leads nowhere: mend it, or remove it"
    except (OSError, ValueError):  # the latter of a name with a zero character
        refusal = (
            f"a folder inside {path} cannot be read: check its rights and those of all folders in it, or "
            "offer a path that means only what can be read"
        )
    raise SourceRejected(refusal)  # out here, where no error is in hand whose words name the folder


def _inside(folder: Path, offered: Path) -> list[Path]:
    """The parquet files in a folder, at any depth."""
    found = [
        Path(entry.path)
        for each in _folders(folder, "._")
        for entry in _entries(each, "._")
        if entry.name.lower().endswith(_ENDING) and not _is_folder(entry.path) and entry.is_file()
    ]
    if not found:
        which = f"{folder} is a directory" if folder == offered else f"{offered} matches a directory"
        raise SourceRejected(f"{which} without .parquet files: name one file")
    return found


def _matching(pattern: Path) -> list[Path]:
    """The files that a pattern means as `glob.glob` would find them, and those inside the folders that it means."""
    places = [Path(pattern.anchor)]
    for part in pattern.relative_to(pattern.anchor).parts:
        found = [inside for place in places if _is_folder(place) for inside in _next(place, part)]
        places = list(dict.fromkeys(found))  # several ** lead to one place in many ways
    if not places:
        raise missing_file(pattern, f"there is no file that matches {pattern}: check the pattern")
    files: list[Path] = []
    for place in places:
        files += _inside(place, pattern) if _is_folder(place) else [place]
    return files


def _next(folder: Path, part: str) -> Iterable[Path]:
    """What one part of a pattern means in a folder."""
    if part == "**":
        return _folders(folder, ".")
    if glob.has_magic(part):
        aside = "" if part.startswith(".") else "."
        return [Path(entry.path) for entry in _entries(folder, aside) if fnmatch.fnmatch(entry.name, part)]
    try:
        os.lstat(folder / part)
    except FileNotFoundError:
        return []
    return [folder / part]


def _folders(top: Path, aside: str) -> Iterator[Path]:
    """A folder and those in it, at any depth; each once, whatever links lead to it, so that no circle is endless."""
    waiting = [top]
    seen: set[tuple[int, int]] = set()
    while waiting:
        folder = waiting.pop()
        identity = _identity(folder)
        if identity in seen:
            continue
        seen.add(identity)
        yield folder
        waiting += [Path(entry.path) for entry in reversed(_entries(folder, aside)) if _is_folder(entry.path)]


def _entries(folder: Path, aside: str) -> list[os.DirEntry[str]]:
    """What stands in a folder, by name, but for names that begin with one of some characters."""
    with os.scandir(folder) as entries:
        return sorted((entry for entry in entries if entry.name[0] not in aside), key=lambda entry: entry.name)


def _is_folder(path: str | Path) -> bool:
    """Whether a path is a folder, or a link to one; an error where a link leads nowhere."""
    return stat.S_ISDIR(os.stat(path).st_mode)


def _each_once(files: Iterable[Path]) -> list[Path]:
    """The files by name, under the first of their names: rows that are read twice would weigh twice."""
    by_identity: dict[tuple[int, int], Path] = {}
    for file in sorted(files):
        by_identity.setdefault(_identity(file), file)
    return list(by_identity.values())


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def identities(path: str | os.PathLike[str]) -> frozenset[object]:
    """The identity of each file that a path, a folder or a pattern means: its device and inode, never its content.

    A file that is on no disk of this machine has its name instead.
    """
    named = os.fspath(path)
    if named.startswith("file:/"):  # as Spark may be told of a file of this machine; what follows is its name as it is
        path = named.removeprefix("file:")
        path = path[path.index("/", 2) :] if path.startswith("//") and "/" in path[2:] else path
    elif "://" in named:
        return frozenset([named])
    files: list[Path] = []
    with suppress(SourceRejected, OSError, ValueError):
        files = parquet_files(Path(path)) or []
    found: set[object] = set()
    for file in files or [Path(path)]:
        try:
            found.add(_identity(file))
        except (OSError, ValueError):
            found.add(os.path.abspath(file))
    return frozenset(found)
