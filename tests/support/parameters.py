"""Tables of cases in few tests, and random cases of which most belong to the long suite."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

Test = Callable[..., None]


def for_each(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Any = None, every: int = 1
) -> Callable[[Test], Test]:
    """All cases in one test, which fails with every case that fails: `pytest.mark.parametrize` where cases are quick.

    Fixtures are made once for all cases. Only `tmp_path` and `monkeypatch` are new for each case. The default suite
    takes one case of `every` so many, the long suite takes all.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(case, len(wanted)) for case in cases]
    labels = [str(one) for one in ids] if ids is not None and not callable(ids) else None
    assert table, "a table without cases tests nothing"

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        assert len(left) + len(wanted) == len(signature.parameters)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            step = fixtures.pop("step") if every > 1 else 1
            failed: list[Exception] = []
            for number, values in list(enumerate(table))[::step]:
                with pytest.MonkeyPatch.context() as patched:
                    own = _of_case(fixtures, number, patched)
                    try:
                        test(**own, **dict(zip(wanted, values, strict=True)))
                    except (Exception, pytest.fail.Exception) as error:
                        label = labels[number] if labels else _label(values, ids)
                        raised = (
                            error
                            if isinstance(error, Exception)
                            else AssertionError(str(error)).with_traceback(error.__traceback__)
                        )
                        raised.add_note(f"in case {number}: {label}")
                        failed.append(raised)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(table)} cases", failed)

        if every > 1:
            left.append(inspect.Parameter("step", inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return pytest.mark.parametrize("step", sizes(every, 1))(run) if every > 1 else run

    return decorate


def tenth(cases: Iterable[Any], every: int = 10) -> list[Any]:
    """Parameters of which every tenth is run by default, and all in the long suite."""
    return [case if i % every == 0 else pytest.param(case, marks=pytest.mark.long) for i, case in enumerate(cases)]


def sizes(few: Any, many: Any) -> list[Any]:
    """A small case that is run by default, and a large one of the long suite: often numbers of random draws."""
    return [few, pytest.param(many, marks=pytest.mark.long)]


def _values(case: Any, many: int) -> tuple[Any, ...]:
    if isinstance(case, ParameterSet):
        assert not case.marks, "a case with marks needs a test of its own"
        return tuple(case.values)
    return tuple(case) if many > 1 else (case,)


def _label(values: tuple[Any, ...], name: Callable[[Any], Any] | None) -> str:
    shown = [name(value) if name else value for value in values]
    return ", ".join(str(one) if isinstance(one, (str, int, float)) else type(one).__name__ for one in shown)


def _of_case(fixtures: dict[str, Any], number: int, patched: pytest.MonkeyPatch) -> dict[str, Any]:
    own = dict(fixtures)
    if "monkeypatch" in own:
        own["monkeypatch"] = patched
    if "tmp_path" in own:
        own["tmp_path"] = Path(own["tmp_path"]) / str(number)
        own["tmp_path"].mkdir()
    return own
