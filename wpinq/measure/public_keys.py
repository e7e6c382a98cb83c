"""Public keys that are given one by one, checked against the type of a plan's records."""

from __future__ import annotations

from collections.abc import Iterable

from wpinq.errors import PlanError
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import UnfitValue, Value, check_canonical, normalize, normalize_all
from wpinq.ingest.typed_columns import plain


class _Checked(tuple[Value, ...]):
    """Keys that were looked at, of one type: they are not looked at again."""

    type: Type


def check_domain(keys: Iterable[object], type_: Type, *, canonical: bool = False) -> tuple[Value, ...]:
    """Public keys in canonical form, each once, in the order given.

    Those of a measurement are `canonical`: what stands for dates and the like, and not these themselves.

    Raises
    ------
    PlanError
        When a key is not of the type of the plan's records.
    """
    if canonical and isinstance(keys, _Checked) and keys.type is type_:
        return keys
    if isinstance(keys, str):
        raise PlanError(f"the keys {keys!r} are one text: give a list of keys, [{keys!r}]")
    if not isinstance(keys, Iterable):
        more = f", or range({keys}) for 0 to {keys - 1}" if type(keys) is int and keys > 0 else ""
        raise PlanError(f"the keys {keys!r} are no list: give a list of keys, [{keys!r}]{more}")
    checked: dict[Value, None] = {}
    nullable, check = type_.with_nullable(), check_canonical if canonical else normalize
    keys = list(keys)
    alike = normalize_all(keys, nullable, check)
    if alike is not None:
        found = _Checked(dict.fromkeys(alike))
        found.type = type_
        return found
    for key in keys:
        try:
            checked[check(plain(key, type_), nullable)] = None
        except UnfitValue as reason:
            single = isinstance(type_, TupleOf) and len(type_.elements) == 1 and not isinstance(key, tuple)
            hint = f"; a record of one field is written ({key!r},)" if single else ""
            raise PlanError(f"the key {key!r} cannot be released: {reason}; keys are of type {type_}{hint}") from None
    return tuple(checked)
