"""Generated modules: instructions on words, the compiler of routines (numba), and files.

A file is named by its content, so that numba finds its compiled code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from llvmlite import ir
from numba import njit, types
from numba.core.compiler import Compiler as Pipeline
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import intrinsic

from wpinq.engines.delta.evaluator import CannotCompile

_OPTIONS = {"error_model": "numpy", "nogil": True}


class _ArraysApart(Pipeline):  # type: ignore[misc]
    """A compiler pipeline for routines whose array arguments never overlap.

    Loops over several arrays then need no check for overlap.
    """

    def define_pipelines(self) -> Any:
        """What numba asks of a pipeline."""
        self.state.flags.noalias = True
        return super().define_pipelines()


class Compiler:
    """The routines of one module, with their signatures.

    Parameters
    ----------
    apart : bool
        Whether no routine is ever given two arrays that overlap, one of which it writes, and none makes an array:
        then numba counts no references to arrays, which takes longer than a call.
    """

    def __init__(self, apart: bool) -> None:
        options = {**_OPTIONS, "pipeline_class": _ArraysApart, "_nrt": False} if apart else _OPTIONS
        called = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        self._inner: list[tuple[Any, str]] = []
        self._entries: list[tuple[Any, str]] = []
        #: Declares a routine that others call.
        self.inner = partial(_declare, self._inner, called)
        #: The same, for one whose body is to stand wherever it is called.
        self.inlined = partial(_declare, self._inner, {**called, "forceinline": True})
        #: Declares a routine that Python calls; numba keeps its machine code.
        self.entry = partial(_declare, self._entries, {**options, "no_cfunc_wrapper": True, "cache": True})

    def compile_inner(self) -> None:
        """Compile what entry points call."""
        _compile(self._inner)

    def compile_entries(self) -> None:
        """Compile the entry points, or load them."""
        _compile(self._entries)


def _declare(
    declared: list[tuple[Any, str]], options: dict[str, Any], signature: str
) -> Callable[[Callable[..., Any]], Any]:
    def declare(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        declared.append((compiled, signature))
        return compiled

    return declare


def _compile(noted: list[tuple[Any, str]]) -> None:
    for function, signature in noted:
        try:
            function.compile(signature)
        except (NumbaError, UnsupportedBytecodeError) as reason:  # the second is no NumbaError
            raise CannotCompile(
                f"numba does not take {function.__name__}, a routine generated for the plan: {type(reason).__name__}"
            ) from reason
        function.disable_compile()


def _load(typing: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return types.int64(array, types.int64), generate


def _save(typing: Any, array: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store(arguments[2], builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


def _same_bits(given: types.Type, wanted: types.Type, kind: ir.Type) -> Any:
    def same_bits(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], kind)

        return wanted(given), generate

    return intrinsic(same_bits)


def _fetch(typing: Any, rows: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word, address = ir.IntType(32), ir.IntType(8).as_pointer()
        distance = builder.mul(arguments[1], builder.extract_value(array.strides, 0))
        place = builder.gep(builder.bitcast(array.data, address), [distance])
        kind = ir.FunctionType(ir.VoidType(), (address, word, word, word))
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (address,), kind)
        builder.call(prefetch, (place, word(1), word(3), word(1)))
        return context.get_dummy_value()

    return types.void(rows, types.uint64), generate


def _fits(operation: str) -> Any:
    def fits(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            both = getattr(builder, operation)(arguments[0], arguments[1])
            return builder.not_(builder.extract_value(both, 1))

        return types.boolean(types.int64, types.int64), generate

    return intrinsic(fits)


load: Callable[[Any, int], int] = intrinsic(_load)
save: Callable[[Any, int, int], None] = intrinsic(_save)
as_float: Callable[[int], float] = _same_bits(types.int64, types.float64, ir.DoubleType())
as_word: Callable[[float], int] = _same_bits(types.float64, types.int64, ir.IntType(64))
#: Has the processor fetch a row, or an entry, that will be wanted soon; it goes on meanwhile.
fetch: Callable[[Any, Any], None] = intrinsic(_fetch)
add_fits = _fits("sadd_with_overflow")
subtract_fits = _fits("ssub_with_overflow")
multiply_fits = _fits("smul_with_overflow")


# --- the files of modules ---------------------------------------------------------------------------------------------

#: The environment variable that names the folder for generated modules.
CACHE_VARIABLE = "WPINQ_CACHE"


def import_module(text: str) -> ModuleType:
    """Import the module of this text from a file in a folder that only its user may write."""
    held = f"{numba.__version__}\n{inspect.getsource(sys.modules[__name__])}\n{text}"
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
