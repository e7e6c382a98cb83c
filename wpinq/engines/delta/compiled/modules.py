"""Generated modules as files, named by their content, so that numba finds its compiled code."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from wpinq.engines.delta.compiled.routine import CannotCompile
from wpinq.errors import install

CACHE_VARIABLE = "WPINQ_CACHE"
"""The environment variable that names the folder for generated modules."""


def import_module(text: str) -> ModuleType:
    """Import the module of this text from a file in a folder that only its user may write."""
    if importlib.util.find_spec("numba") is None:
        raise CannotCompile(f"the compiled engine needs numba: {install('synthesis')}; the python engine runs without")
    import numba

    from wpinq.engines.delta.compiled import intrinsics

    held = f"{numba.__version__}\n{inspect.getsource(intrinsics)}\n{text}"
    digest = hashlib.blake2b(held.encode(), digest_size=12).hexdigest()
    name = f"wpinq_compiled_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    path = _folder() / f"{name}.py"
    if not (path.exists() and path.read_text(encoding="utf-8") == text):
        _write(path, text)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
        ready = path.with_suffix(".ready")
        if not ready.exists():
            module.compiler.compile_inner()
        module.compiler.compile_entries()
        ready.touch()
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _folder() -> Path:
    """A folder of the user's own: what is in it is run."""
    given = os.environ.get(CACHE_VARIABLE)
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(given) if given else base / "wpinq" / "compiled"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_own(folder) and os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # a folder that cannot be written, a user without a home
        pass
    if given:
        raise CannotCompile(
            f"{CACHE_VARIABLE} must name a folder that its owner can write, and nobody else; it is not one"
        )
    return Path(_temporary().name)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """A folder for this process alone, which goes with it."""
    return tempfile.TemporaryDirectory(prefix="wpinq-compiled-", ignore_cleanup_errors=True)


def _is_own(folder: Path) -> bool:
    held = folder.stat()
    mine = not hasattr(os, "getuid") or held.st_uid == os.getuid()
    return mine and not held.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _write(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
