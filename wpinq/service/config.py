"""What a curator declares of a service, in a TOML file: sources and their data, ledger, limits, where it listens."""

from __future__ import annotations

import ipaddress
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from wpinq.api.query import Query
from wpinq.data import EdgeList
from wpinq.data.source_files import as_key, source_data
from wpinq.errors import LanguageError, SessionError, UsageError, WpinqError
from wpinq.kernel.sandbox.limits import Limits
from wpinq.language import parse
from wpinq.noise.epsilon import parse_epsilon

_SECTIONS = ("service", "limits", "untrusted", "declarations", "sources")
_SOURCE_KEYS = ("file", "edge_list", "columns", "budget", "version")


@dataclass(frozen=True, slots=True)
class OfferedSource:
    """A source of the service: its declaration, its data as a session takes them, its budget."""

    query: Query
    data: object
    budget: Fraction
    version: str | None


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What one caller may take of the service, and all of them together.

    Attributes
    ----------
    body_bytes : int
        Of a request.
    requests_a_minute, releases_a_minute : int
        Of one token: all requests, and those among them that release.
    at_once : int
        Requests of one token that are worked on at the same time.
    queue : int
        Requests that wait for a slot, or for a clerk, before others are turned away.
    queue_seconds : float
        How long one waits there.
    slow_seconds : float
        How long a client may take to send a request, or to take an answer.
    explain_seconds : float
        Processor time for the check and the bill of a program.
    release_seconds : float
        How long one request may hold a slot: what asks for longer is refused.
    connections : int
        Open at the same time.
    """

    body_bytes: int = 256 * 1024
    requests_a_minute: int = 240
    releases_a_minute: int = 30
    at_once: int = 4
    queue: int = 64
    queue_seconds: float = 60.0
    slow_seconds: float = 15.0
    explain_seconds: float = 10.0
    release_seconds: float = 600.0
    connections: int = 256


@dataclass(frozen=True, slots=True)
class Configuration:
    """A service: see `docs/service.md` for the file.

    Attributes
    ----------
    ledger, register : Path
        The files of budgets and of who may ask.
    sources : mapping
        By name.
    """

    ledger: Path
    register: Path
    sources: Mapping[str, OfferedSource]
    host: str = "127.0.0.1"
    port: int = 8765
    slots: int = 2
    clerks: int = 2
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    untrusted: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("TLS takes both: certificate = FILE and key = FILE in [service]")
        if self.ledger.resolve() == self.register.resolve():
            raise UsageError(f"ledger and register in [service] are two files, not both {self.ledger}")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise UsageError(f"there is no file {path}, which [service] names for TLS")
        if self.certificate is None and not (self.behind_proxy or _is_loopback(self.host)):
            raise UsageError(
                f"tokens would go over the network to {self.host} in clear: give certificate and key in [service], "
                "listen on 127.0.0.1, or say behind_proxy = true where a proxy on this machine or network does the TLS"
            )
        if self.slots < 1 or self.clerks < 1 or not 0 <= self.port < 65536:
            raise UsageError("[service] takes at least one of slots and of clerks, and a port from 0 to 65535")

    @property
    def declared(self) -> dict[str, Query]:
        """The sources that programs may use."""
        return {name: offered.query for name, offered in self.sources.items()}


def read_configuration(path: Path) -> Configuration:
    """The service that a file declares. Paths in it are taken from where it lies.

    Raises
    ------
    UsageError
        At the first thing that is missing, unknown or of another kind.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UsageError(f"{path} cannot be read as the configuration of a service") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    try:
        return configuration_of(given, path.absolute().parent)
    except (UsageError, LanguageError):
        raise
    except WpinqError as error:
        raise UsageError(f"{path}: {error}") from None


def configuration_of(given: Mapping[str, Any], folder: Path) -> Configuration:
    """The service that plain data declare, with paths taken from a folder."""
    _known(given, _SECTIONS, "the configuration")
    text = given.get("declarations")
    if not isinstance(text, str):
        raise UsageError(
            'declarations = """source edges(src: int, dst: int);""" is missing: the sources, as in programs'
        )
    sources = _sources(text, _table(given, "sources"), folder)
    held = {
        name: folder / value if name in ("ledger", "register", "certificate", "key") else value
        for name, value in _typed(Configuration, _table(given, "service"), "[service]").items()
    }
    for name in ("ledger", "register"):
        if name not in held:
            raise UsageError(f'{name} = "FILE" is missing in [service]')
    limits = ServiceLimits(**_typed(ServiceLimits, _table(given, "limits"), "[limits]"))
    _check_positive(limits)
    return Configuration(**held, sources=sources, limits=limits, untrusted=_untrusted(given))


def _sources(text: str, offered: Mapping[str, Any], folder: Path) -> dict[str, OfferedSource]:
    program = parse(text, name="declarations")
    if list(program):
        raise UsageError("declarations hold source statements alone")
    if set(program.sources) != set(offered) or not offered:
        raise UsageError("each source of the declarations has its data in [sources.NAME], and none is there besides")
    found = {}
    for name, told in offered.items():
        where = f"[sources.{name}]"
        _known(told, _SOURCE_KEYS, where)
        if not all(isinstance(value, str) for key, value in told.items() if key != "budget"):
            raise UsageError(f"{where}: all but the budget is text, in quotes")
        for needed in ("file", "budget"):
            if needed not in told:
                raise UsageError(f"{needed} is missing in {where}")
        file = str(folder / told["file"])
        data = source_data(name, file, told.get("edge_list"), told.get("columns"), as_key)
        promised = program.promising({name: data.facts} if isinstance(data, EdgeList) else {}).sources[name]
        found[name] = OfferedSource(promised, data, parse_epsilon(told["budget"]), told.get("version"))
    return found


_KINDS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}


def _typed(made: type, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is given for the fields of a dataclass, each of its kind; paths as text."""
    kinds = {each.name: str(each.type).removesuffix(" | None").replace("Path", "str") for each in fields(made)}
    kinds = {name: kind for name, kind in kinds.items() if kind in _KINDS}
    _known(given, kinds, where)
    for name, value in given.items():
        expected = _KINDS[kinds[name]]
        if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
            raise UsageError(f"{name} in {where} is of type {kinds[name]}")
    return dict(given)


def _untrusted(given: Mapping[str, Any]) -> Limits:
    try:
        return Limits(**_typed(Limits, _table(given, "untrusted"), "[untrusted]"))
    except SessionError as error:
        raise UsageError(f"[untrusted]: {error}") from None


def _check_positive(limits: ServiceLimits) -> None:
    for each in fields(limits):
        if not 0 < getattr(limits, each.name) < math.inf:
            raise UsageError(f"{each.name} in [limits] is more than 0, and finite")


def _table(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = given.get(name, {})
    if not isinstance(found, dict):
        raise UsageError(f"[{name}] is a table")
    return found


def _known(given: object, names: Any, where: str) -> None:
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is a table")
    for name in given:
        if name not in names:
            raise UsageError(f"{where} has no {name!r}; it has {', '.join(names)}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
