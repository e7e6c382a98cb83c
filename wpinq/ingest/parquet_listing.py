"""Which parquet files a path, a folder or a pattern means: all of them, or a refusal.

`Path.rglob` and `glob.glob` pass over folders that cannot be listed, so that a part of a table would be read without a
word; and one of them follows links to folders, the other does not. Here nothing is passed over, and both are followed.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from wpinq.errors import SourceRejected
from wpinq.ingest.files import missing_file

_ENDING = ".parquet"


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
        if entry.name.lower().endswith(_ENDING) and not _is_folder(entry) and entry.is_file()
    ]
    if not found:
        which = f"{folder} is a directory" if folder == offered else f"{offered} matches a directory"
        raise SourceRejected(f"{which} without .parquet files: name one file")
    return found


def _matching(pattern: Path) -> list[Path]:
    """The files that a pattern means as `glob.glob` would find them, and those inside the folders that it means."""
    places = [Path(pattern.anchor)]
    for part in pattern.relative_to(pattern.anchor).parts:
        found = [inside for place in places if _leads_to_folder(place) for inside in _next(place, part)]
        places = list(dict.fromkeys(found))  # several ** lead to one place in many ways
    if not places:
        raise missing_file(pattern, f"there is no file that matches {pattern}: check the pattern")
    files: list[Path] = []
    for place in places:
        files += _inside(place, pattern) if _leads_to_folder(place) else [place]
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
        waiting += [Path(entry.path) for entry in reversed(_entries(folder, aside)) if _is_folder(entry)]


def _entries(folder: Path, aside: str) -> list[os.DirEntry[str]]:
    """What stands in a folder, by name, but for names that begin with one of some characters."""
    with os.scandir(folder) as entries:
        return sorted((entry for entry in entries if entry.name[0] not in aside), key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one; an error where a link leads nowhere, which `is_dir` would not tell."""
    return _leads_to_folder(Path(entry.path)) if entry.is_symlink() else entry.is_dir()


def _leads_to_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.stat().st_mode)


def _each_once(files: Iterable[Path]) -> list[Path]:
    """The files by name, under the first of their names: rows that are read twice would weigh twice."""
    by_identity: dict[tuple[int, int], Path] = {}
    for file in sorted(files):
        by_identity.setdefault(_identity(file), file)
    return list(by_identity.values())


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
