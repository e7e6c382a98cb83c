"""Public domains of keys, described and not enumerated: ranges, digits, lists, products.

A domain knows its size, whether a key is in it, and its keys by number in canonical order, however many there are. Keys
are in canonical form here (`expr.values`), and in no particular type until `of` has checked a domain against one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, cast

from wpinq.columns.records import column_names
from wpinq.data.layout import plain
from wpinq.errors import PlanError, described, described_key
from wpinq.expr.types import INT, INT_MAX, INT_MIN, STR, TupleOf, Type
from wpinq.expr.values import (
    CheckedKeys,
    KeyPairs,
    UnfitValue,
    Value,
    check_canonical,
    normalize,
    normalize_all,
    order_key,
)
from wpinq.plan.format import Json, value_from_json, value_to_json

# Public keys that are given one by one, checked against the type of a plan's records.


def check_domain(keys: Iterable[object], type_: Type, *, canonical: bool = False) -> tuple[Value, ...]:
    """Public keys in canonical form, each once, in the order given.

    Those of a measurement are `canonical`: what stands for dates and the like, and not these themselves.

    Raises
    ------
    PlanError
        When a key is not of the type of the plan's records.
    """
    if canonical and isinstance(keys, (CheckedKeys, KeyPairs)) and keys.type == type_:
        return cast("tuple[Value, ...]", keys)
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
        found = CheckedKeys(dict.fromkeys(alike))
        found.type = type_
        return found
    for key in keys:
        try:
            checked[check(plain(key, type_), nullable)] = None
        except UnfitValue as reason:
            one = isinstance(type_, TupleOf) and len(type_.elements) == 1 and not isinstance(key, tuple)
            text, hint = described_key(key), f"; a record of one field is written ({described(key)},)" if one else ""
            raise PlanError(f"the key {text} cannot be released: {reason}; keys are of type {type_}{hint}") from None
    return tuple(checked)


#: The most keys of a domain.
LARGEST_DOMAIN = 10**12


class KeyDomain(ABC):
    """A finite set of public keys in canonical order.

    Attributes
    ----------
    plain : Type
        The type of its keys, but for null, where they have one of their own.

    Examples
    --------
    >>> import wpinq as wp
    >>> pairs = wp.product(wp.digits(5), ["north", "south"])
    >>> pairs.size, pairs.key(3), pairs.index(("00001", "south")), ("1", "north") in pairs
    (200000, ('00001', 'south'), 3, False)
    """

    size: int
    plain: ClassVar[Type]

    @abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abstractmethod
    def key(self, index: int) -> Value:
        """The key of this number, from 0, in canonical order."""

    @abstractmethod
    def index(self, key: Value) -> int:
        """The number of a key that is in the domain."""

    def of(self, type_: Type) -> KeyDomain:
        """The domain over keys of a type, in canonical form; PlanError where it is not of that type.

        A null is in a domain only where it is given.
        """
        if type_.with_nullable(False) != self.plain:
            raise PlanError(f"the keys are of type {type_}, and {self} are {self.plain}")
        return self

    @abstractmethod
    def to_json(self, type_: Type) -> dict[str, Json]:
        """The domain, over keys of a type, as plain data: the same for the same description."""

    def _check_size(self) -> None:
        if not 1 <= self.size <= LARGEST_DOMAIN:
            raise PlanError(f"a domain has from 1 to {LARGEST_DOMAIN:,} keys, not {self.size:,}: {self}")


@dataclass(frozen=True, slots=True)
class IntegerKeys(KeyDomain):
    """The integers from `first` to `last`, both of them in it."""

    plain: ClassVar[Type] = INT
    first: int
    last: int
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not all(type(end) is int and INT_MIN <= end <= INT_MAX for end in (self.first, self.last)):
            raise PlanError("integers are from one int of 64 bits to another: integers(0, 99_999)")
        object.__setattr__(self, "size", self.last - self.first + 1)
        self._check_size()

    def __str__(self) -> str:
        return f"the integers from {self.first} to {self.last}"

    def __contains__(self, key: object) -> bool:
        return type(key) is int and self.first <= key <= self.last

    def key(self, index: int) -> Value:
        return self.first + index

    def index(self, key: Value) -> int:
        return int(key) - self.first

    def to_json(self, type_: Type) -> dict[str, Json]:
        return {"integers": [self.first, self.last]}


@dataclass(frozen=True, slots=True)
class DigitKeys(KeyDomain):
    """The texts of so many digits, from 0…0 to 9…9."""

    plain: ClassVar[Type] = STR
    length: int
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.length) is not int or not 1 <= self.length <= 12:
            raise PlanError("texts of digits have from 1 to 12 of them: digits(5)")
        object.__setattr__(self, "size", 10**self.length)

    def __str__(self) -> str:
        return f"the texts of {self.length} digits"

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and len(key) == self.length and key.isascii() and key.isdigit()

    def key(self, index: int) -> Value:
        return f"{index:0{self.length}d}"

    def index(self, key: Value) -> int:
        return int(key)

    def to_json(self, type_: Type) -> dict[str, Json]:
        return {"digits": self.length}


@dataclass(frozen=True, slots=True)
class GivenKeys(KeyDomain):
    """Keys that are given one by one; `of` puts them in canonical form and order."""

    keys: tuple[Value, ...]
    size: int = field(init=False, compare=False)
    _numbers: Mapping[Value, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.keys))
        object.__setattr__(self, "_numbers", {key: number for number, key in enumerate(self.keys)})
        self._check_size()

    def __str__(self) -> str:
        return f"{self.size:,} given keys"

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def key(self, index: int) -> Value:
        return self.keys[index]

    def index(self, key: Value) -> int:
        return self._numbers[key]

    def of(self, type_: Type) -> KeyDomain:
        return _in_order(check_domain(self.keys, type_))

    def to_json(self, type_: Type) -> dict[str, Json]:
        return {"keys": [value_to_json(key, type_) for key in self.keys]}


@dataclass(frozen=True, slots=True)
class ProductKeys(KeyDomain):
    """Records with a field out of each part, all combinations of them."""

    parts: tuple[KeyDomain, ...]
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", math.prod(part.size for part in self.parts))
        if not self.parts:
            raise PlanError("a product of domains has at least one part: product(integers(0, 9), digits(5))")
        self._check_size()

    def __str__(self) -> str:
        return f"the records of {' and '.join(map(str, self.parts))}"

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple) or len(key) != len(self.parts):
            return False
        return all(item in part for item, part in zip(key, self.parts, strict=True))

    def key(self, index: int) -> Value:
        items = []
        for part in reversed(self.parts):
            index, number = divmod(index, part.size)
            items.append(part.key(number))
        return tuple(reversed(items))

    def index(self, key: Value) -> int:
        number = 0
        for item, part in zip(key, self.parts, strict=True):
            number = number * part.size + part.index(item)
        return number

    def of(self, type_: Type) -> KeyDomain:
        if not isinstance(type_, TupleOf) or len(type_.elements) != len(self.parts):
            raise PlanError(f"the keys are of type {type_}, and {self} are records of {len(self.parts)} fields")
        return ProductKeys(tuple(part.of(element) for part, element in zip(self.parts, type_.elements, strict=True)))

    def to_json(self, type_: Type) -> dict[str, Json]:
        assert isinstance(type_, TupleOf)
        pairs = zip(self.parts, type_.elements, strict=True)
        return {"product": [part.to_json(element) for part, element in pairs]}


def integers(first: int, last: int) -> KeyDomain:
    """The public domain of the integers from `first` to `last`, inclusive.

    For `noisy_count_above`.

    Examples
    --------
    >>> integers(0, 99_999).size
    100000
    """
    return IntegerKeys(first, last)


def digits(length: int) -> KeyDomain:
    """The public domain of the texts of `length` digits, such as zip codes.

    For `noisy_count_above`.

    Examples
    --------
    >>> digits(5).key(7)
    '00007'
    """
    return DigitKeys(length)


def product(*parts: KeyDomain | Iterable[object]) -> KeyDomain:
    """The public domain of records with a field from each part, for `noisy_count_above`.

    Parameters
    ----------
    *parts : KeyDomain, range or iterable
        The domain of each field, in the order of the fields.

    Examples
    --------
    >>> product(range(1000), ["north", "south"]).size
    2000
    """
    return ProductKeys(tuple(map(key_domain, parts)))


def key_domain(given: KeyDomain | Iterable[object]) -> KeyDomain:
    """A domain, or what stands for one: a range, or keys that are listed one by one."""
    if isinstance(given, KeyDomain):
        return given
    if isinstance(given, range) and given.step == 1 and len(given):
        return IntegerKeys(given.start, given.stop - 1)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PlanError(f"{given!r} is no domain of keys: give integers(0, 99_999), digits(5), product(…), or a list")
    keys = tuple(map(_hashable, given))
    try:
        return GivenKeys(keys)
    except TypeError:  # what has no hash is no value of a record
        raise PlanError("a key of a domain is a value or a record of values: a number, text, a tuple of such") from None


def _hashable(key: object) -> Value:
    return tuple(map(_hashable, key)) if isinstance(key, (list, tuple)) else key


def _in_order(keys: Iterable[Value]) -> KeyDomain:
    return GivenKeys(tuple(sorted(dict.fromkeys(keys), key=order_key)))


def ranges(domain: KeyDomain, type_: Type) -> list[tuple[Value, Value] | None]:
    """The least and greatest value in each column of the keys; None where that says little.

    The keys are of `type_`.

    Examples
    --------
    >>> from wpinq.expr.types import tuple_type
    >>> ranges(product(digits(2), range(5)), tuple_type([STR, INT]))
    [('00', '99'), (0, 4)]
    """
    if isinstance(domain, ProductKeys):
        assert isinstance(type_, TupleOf)
        inside = zip(domain.parts, type_.elements, strict=True)
        return [None] * type_.nullable + [found for part, element in inside for found in ranges(part, element)]
    ends = domain.key(0), domain.key(domain.size - 1)
    names = column_names(type_)
    return [ends] if len(names) == 1 and all(type(end) in (int, str) for end in ends) else [None] * len(names)


def domain_from_json(data: Json, type_: Type) -> KeyDomain:
    """The domain over keys of a type that plain data describe.

    Any error may be raised where they describe none.
    """
    ((kind, content),) = data.items()
    if kind == "integers":
        first, last = content
        return IntegerKeys(first, last).of(type_)
    if kind == "digits":
        return DigitKeys(content).of(type_)
    if kind == "keys":
        return _in_order(value_from_json(key, type_) for key in content)
    if kind != "product" or not isinstance(type_, TupleOf):
        raise PlanError("these data describe no domain of keys")
    pairs = zip(content, type_.elements, strict=True)
    return ProductKeys(tuple(domain_from_json(part, element) for part, element in pairs))
