"""Imports of generated modules: instructions on words, and the compiler of routines (numba)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.compiler import Compiler as Pipeline
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import intrinsic

from wpinq.engines.delta.compiled.routine import CannotCompile

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
        Whether no routine is ever given two arrays that overlap, one of which it writes.
    """

    def __init__(self, apart: bool) -> None:
        self._options = {**_OPTIONS, "pipeline_class": _ArraysApart} if apart else _OPTIONS
        self._inner: list[tuple[Any, str]] = []
        self._entries: list[tuple[Any, str]] = []

    def inner(self, signature: str) -> Callable[[Callable[..., Any]], Any]:
        """Declare a routine that others call."""
        compiled = njit(**self._options, no_cpython_wrapper=True, no_cfunc_wrapper=True)
        return lambda function: _noted(self._inner, compiled(function), signature)

    def inlined(self, signature: str) -> Callable[[Callable[..., Any]], Any]:
        """The same, for one whose body is to stand wherever it is called."""
        compiled = njit(**self._options, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
        return lambda function: _noted(self._inner, compiled(function), signature)

    def entry(self, signature: str) -> Callable[[Callable[..., Any]], Any]:
        """Declare a routine that Python calls; numba keeps its machine code."""
        compiled = njit(**self._options, cache=True, no_cfunc_wrapper=True)
        return lambda function: _noted(self._entries, compiled(function), signature)

    def compile_inner(self) -> None:
        """Compile what entry points call."""
        _compile(self._inner)

    def compile_entries(self) -> None:
        """Compile the entry points, or load them."""
        _compile(self._entries)


def _noted(noted: list[tuple[Any, str]], function: Any, signature: str) -> Any:
    noted.append((function, signature))
    return function


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


def _as_float(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


def _as_word(typing: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _fits(operation: str) -> Any:
    def fits(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            both = getattr(builder, operation)(arguments[0], arguments[1])
            return builder.not_(builder.extract_value(both, 1))

        return types.boolean(types.int64, types.int64), generate

    return intrinsic(fits)


load: Callable[[Any, int], int] = intrinsic(_load)
save: Callable[[Any, int, int], None] = intrinsic(_save)
as_float: Callable[[int], float] = intrinsic(_as_float)
as_word: Callable[[float], int] = intrinsic(_as_word)
add_fits = _fits("sadd_with_overflow")
subtract_fits = _fits("ssub_with_overflow")
multiply_fits = _fits("smul_with_overflow")
