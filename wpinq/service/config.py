"""The configuration of a service: sources with their data, files, address and limits."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic.networks import IPvAnyNetwork

from wpinq.api.people import tables_of
from wpinq.api.query import Query
from wpinq.api.series import Series
from wpinq.data import EdgeList
from wpinq.data.source_files import as_key, source_data, tables_data
from wpinq.errors import LanguageError, SessionError, UsageError, WpinqError
from wpinq.kernel.ledger.postgres import LedgerURL
from wpinq.kernel.sandbox.admission import Limits
from wpinq.language import parse
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.node import Node


def _in_folder(given: object, info: ValidationInfo) -> object:
    if isinstance(given, str):
        assert isinstance(info.context, Path)
        return info.context / given
    return given


def _ledger_place(given: object, info: ValidationInfo) -> object:
    if isinstance(given, str) and LedgerURL.matches(given):
        return LedgerURL(given)
    return _in_folder(given, info)


#: A path, taken from the folder of the configuration.
File = Annotated[Path, BeforeValidator(_in_folder)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class _Section(BaseModel):
    """A table of the file: unknown keys and other types are refused."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


@dataclass(frozen=True, slots=True)
class OfferedSource:
    """A source of the service: its declaration, its data as a session takes them, its budget."""

    query: Query
    data: Any
    budget: Fraction
    version: str | None


class ServiceLimits(_Section):
    """Limits of one user, and of all users together.

    Attributes
    ----------
    body_bytes : int
        Size of a request.
    requests_a_minute, releases_a_minute : int
        Of one user: all requests, and the releases among them.
    wrong_tokens_a_minute : int
        Of one address, before they are slowed.
    at_once : int
        Requests of one user in work at the same time.
    queue : int
        Waiting requests for each kind of worker, before others are refused.
    queue_seconds : float
        The longest wait there.
    slow_seconds : float
        Time for a client to send a request, or to take an answer.
    explain_seconds : float
        Processor time to check and price a program.
    release_seconds : float
        The longest release: longer ones are refused.
    connections : int
        Open at the same time.
    """

    body_bytes: Count = 256 * 1024
    requests_a_minute: Count = 240
    releases_a_minute: Count = 30
    wrong_tokens_a_minute: Count = 20
    at_once: Count = 4
    queue: Count = 64
    queue_seconds: Seconds = 60.0
    slow_seconds: Seconds = 15.0
    explain_seconds: Seconds = 10.0
    release_seconds: Seconds = 600.0
    connections: Count = 256


class ServiceSection(_Section):
    """The table [service]: files, address, TLS, proxies, and numbers of workers."""

    ledger: Annotated[Path | LedgerURL, BeforeValidator(_ledger_place)]
    users: File
    host: str = "127.0.0.1"
    port: int = Field(8765, ge=0, lt=65536)
    release_workers: Count = 2
    planners: Count = 2
    certificate: File | None = None
    key: File | None = None
    behind_proxy: bool = False
    socket: File | None = None
    proxies: list[IPvAnyNetwork] = []
    authenticate: str | None = Field(None, pattern="^[A-Za-z][A-Za-z0-9-]*$", max_length=64)
    log_addresses: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("TLS takes both: certificate = FILE and key = FILE in [service]")
        if isinstance(self.ledger, Path) and self.ledger.resolve() == self.users.resolve():
            raise UsageError(f"ledger and users in [service] are two files, not both {self.ledger}")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise UsageError(f"there is no file {path}, which [service] names for TLS")
        if self.authenticate is not None and self.socket is None and not self.proxies:
            raise UsageError(
                f"{self.authenticate} can be set by any client: name the proxy that sets it, by socket = "
                "FILE or proxies = [ADDRESS] in [service]"
            )
        if self.certificate is None and not (self.behind_proxy or _is_loopback(self.host)):
            raise UsageError(
                f"tokens would cross the network to {self.host} unencrypted: give certificate and key in [service], "
                "listen on 127.0.0.1, or say behind_proxy = true where a proxy on this machine or network does the TLS"
            )
        return self


class SourceSection(_Section):
    """A table [sources.NAME]: the data of a source and its first budget."""

    file: str | dict[str, str]
    budget: str | int | float
    edge_list: str | None = None
    columns: str | None = None
    delimiter: str | None = None
    version: str | None = None


class ServiceFile(_Section):
    """The whole file."""

    declarations: str
    service: ServiceSection
    sources: dict[str, SourceSection]
    limits: ServiceLimits = ServiceLimits()
    sandbox: dict[str, Any] = {}


class Configuration(ServiceSection):
    """A service: see `docs/service.md` for the file."""

    sources: Mapping[str, OfferedSource]
    limits: ServiceLimits
    sandbox: Limits

    @property
    def declared(self) -> dict[str, Query]:
        """The sources that programs may use, without the names of their columns."""
        plans = {name: offered.query.plan.operator for name, offered in self.sources.items()}
        return {name: Query(Node(replace(plan, columns=None))) for name, plan in plans.items()}  # type: ignore[type-var]


def read_configuration(path: Path) -> Configuration:
    """The service that a file declares; relative paths start at the folder of the file.

    Raises
    ------
    UsageError
        At the first key that is missing, unknown or wrong.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UsageError(f"{path} cannot be read as the configuration of a service") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    try:
        return configuration_of(given, path.absolute().parent)
    except (UsageError, LanguageError):
        raise
    except WpinqError as error:
        raise UsageError(f"{path}: {error}") from None


def configuration_of(given: Mapping[str, Any], folder: Path) -> Configuration:
    """The service that plain data declare, with paths taken from a folder."""
    try:
        file = ServiceFile.model_validate(given, context=folder)
    except ValidationError as error:
        faults = error.errors()
        first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])  # a misspelled key
        *tables, key = map(str, first["loc"])
        where = f"[{'.'.join(tables)}]" if tables else "the configuration"
        raise UsageError(f"{key} in {where}: {first['msg']}") from None
    try:
        sandbox = Limits(**file.sandbox)
    except (TypeError, SessionError) as error:
        raise UsageError(f"[sandbox]: {error}") from None
    return Configuration(**dict(file.service), sources=_sources(file, folder), limits=file.limits, sandbox=sandbox)


def _sources(file: ServiceFile, folder: Path) -> dict[str, OfferedSource]:
    program = parse(file.declarations, name="declarations")
    if list(program):
        raise UsageError("declarations may hold source statements only")
    if set(program.sources) != set(file.sources) or not file.sources:
        raise UsageError("each declared source needs its data in [sources.NAME], and no other source may be there")
    found = {}
    for name, given in file.sources.items():
        if isinstance(program.sources[name], Series):
            raise UsageError(f"[sources.{name}]: a series is not served: release its epochs with wpinq publish")
        data: Any
        if (tables := tables_of(program.sources[name])) or not isinstance(given.file, str):
            if not isinstance(given.file, dict) or {*given.file} != {*tables}:
                each = ", ".join(f'{table} = "..."' for table in tables) or '"..."'
                raise UsageError(f"[sources.{name}]: file gives {'each table its own' if tables else 'one'}: {each}")
            files = {f"{name}.{table}": str(folder / path) for table, path in given.file.items()}
            delimiters = dict.fromkeys(files, given.delimiter) if given.delimiter else {}
            data = tables_data(name, tables, files, delimiters, as_key, (given.edge_list, given.columns))
        else:
            file_ = str(folder / given.file)
            data = source_data(name, file_, given.edge_list, given.columns, given.delimiter, as_key)
        query = program.promising({name: data.facts} if isinstance(data, EdgeList) else {}).sources[name]
        found[name] = OfferedSource(query, data, parse_epsilon(given.budget), given.version)
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
