"""A client of a service: what `wpinq serve` answers, as the objects that a session gives."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from fractions import Fraction
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.parse import urlsplit

from wpinq import errors
from wpinq.api.query import Query
from wpinq.language import parse, unparse
from wpinq.marginals.released import MarginalTables
from wpinq.measure.answers import Answers
from wpinq.measure.bill import Bill, bill, named
from wpinq.measure.group import Compound, Together
from wpinq.measure.measurement import Measurement, measurement_to_json
from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import Epsilon, EpsilonLike, format_epsilon
from wpinq.plan.node import sources
from wpinq.plan.operators.source import Source
from wpinq.runtime.public import public
from wpinq.tables.tabulation import Table, Tabulation


class ServiceError(errors.WpinqError):
    """A service is unreachable, or refuses a request, for example for a wrong token.

    Attributes
    ----------
    status : int
        Of HTTP; 0 where no answer came.
    kind : str
        The kind of refusal.
    """

    def __init__(self, message: str, status: int = 0, kind: str = "Unreachable") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


@public
class ServiceConnection:
    """An analyst's connection to a service, made by `connect`; no repr shows the token.

    Attributes
    ----------
    sources : dict
        The declared sources by name, to write queries over.
    """

    def __init__(self, url: str, token: str, timeout: float, context: ssl.SSLContext) -> None:
        self._url, self._token, self._timeout = url.rstrip("/"), token, timeout
        handlers = [urllib.request.HTTPSHandler(context=context), _NoRedirects()]
        if self._url.startswith("http:"):  # to this machine: a proxy would be sent the token in clear
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)
        declared = "\n".join(each["declaration"] for each in self.request("GET", "sources"))
        self.sources: dict[str, Query] = parse(declared).sources

    def __repr__(self) -> str:
        return f"<ServiceConnection to {self._url}>"

    def __reduce__(self) -> NoReturn:
        raise ServiceError("a connection holds a token and cannot be pickled or copied: connect again")

    def release(
        self,
        measurements: Together | str,
        *,
        fresh: bool = False,
        label: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> Any:
        """Release measurements: one debit of the analyst's own budgets, all or nothing.

        Parameters
        ----------
        measurements : Measurement, Tabulation or MarginalTabulation, several in a list or dict, or a text program
            The measurements to release. All need public keys.
        fresh : bool
            Whether to draw new noise, at full cost, where the same was released before.
        label : str, optional
            The note on the debit.
        parameters : mapping, optional
            The parameters of a text program.

        Returns
        -------
        Answers, Table or MarginalTables, a list of them, or a dict
            As `Session.release` gives them; of a text program a dict by name.

        Raises
        ------
        WpinqError
            The error that a session would raise, or ServiceError.
        """
        named, asked = self._named(measurements, parameters)
        told = self.request("POST", "release", {**asked, "fresh": fresh, **({} if label is None else {"label": label})})
        found = {name: _read(one, told["answers"][name]["data"]) for name, one in named.items()}
        if isinstance(measurements, str):
            return found
        if isinstance(measurements, Mapping):
            return dict(zip(measurements, found.values(), strict=True))
        return next(iter(found.values())) if isinstance(measurements, (Measurement, Compound)) else list(found.values())

    def sql(
        self, text: str, *, epsilon: EpsilonLike | None = None, fresh: bool = False, label: str | None = None
    ) -> Table:
        """Release the table of a SELECT over the sources: see `wpinq.sql`; the service reads it."""
        cost = None if epsilon is None else format_epsilon(parse_epsilon(epsilon))
        asked = {"sql": text, "epsilon": cost, "fresh": fresh, "label": label}
        return Table.from_json(self.request("POST", "release", asked)["answers"]["sql"]["data"])

    def bill(self, measurements: Together, *, fresh: bool = False) -> Bill:
        """The cost of measurements, before replay and earlier releases of partitions lower it."""
        return bill(measurements, fresh=fresh)

    def quote(
        self, measurements: Together | str, *, fresh: bool = False, parameters: Mapping[str, object] | None = None
    ) -> dict[str, Epsilon]:
        """The debit of a release from the analyst's own budgets now, by account."""
        _, asked = self._named(measurements, parameters)
        told = self.request("POST", "explain", {**asked, "fresh": fresh})
        return {account: _epsilon(cost) for account, cost in told["quote"].items()}

    def remaining(self, source: str) -> Epsilon:
        """The remaining epsilon of the analyst's own budget for a source or an account."""
        known = self._declared().get(source)
        account = source if known is None else known.account
        for balance in self.balances():
            if balance.account == account:
                return balance.remaining
        raise ServiceError(f"you have no budget for {source!r}: ask the curator for one", 404, "NoBudget")

    def balances(self) -> tuple[Balance, ...]:
        """The balances of the analyst's own budgets, by account."""
        weights = {each.account: each.unit_weight for each in self._declared().values()}
        balances = []
        for each in self.request("GET", "remaining"):
            weight, spent = weights.get(each["account"], Fraction(1)), _epsilon(each["spent"])
            balances.append(Balance(each["account"], each["unit"], weight, _epsilon(each["budget"]), spent))
        return tuple(balances)

    def history(self) -> tuple[Event, ...]:
        """The debits of the analyst's own budgets, in order, counted from 1."""
        names, events = ("time", "kind", "account", "description", "label", "actor"), list[Any]()
        while page := self.request("GET", f"history?after={len(events)}"):
            events += page
        return tuple(
            Event(each["number"], amount=_epsilon(each["amount"]), **{name: each[name] for name in names})
            for each in events
        )

    def _declared(self) -> dict[str, Source]:
        return sources(query.plan for query in self.sources.values())

    def _named(
        self, measurements: Together | str, parameters: Mapping[str, object] | None
    ) -> tuple[Mapping[str, Measurement | Compound], dict[str, Any]]:
        """What is asked for by name, and how it is said to the service."""
        if isinstance(measurements, str):
            told = parameters or {}
            values = {name: value if isinstance(value, (bool, int)) else str(value) for name, value in told.items()}
            program = parse(measurements, values, sources=self.sources)
            return dict(program.releases), {"program": measurements, "parameters": values}
        # names for the way there: their own may be any
        found: dict[str, Any] = {f"release{number}": each for number, (_, each) in enumerate(named(measurements))}
        plans = {name: measurement_to_json(each) for name, each in found.items() if isinstance(each, Measurement)}
        if len(plans) == len(found):
            return found, {"measurements": plans}
        return found, {"program": unparse(found)}

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON of one request below `/v1`, such as `request("GET", "sources")`."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(f"{self._url}/v1/{path}", data, headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as refused:
            with refused:
                raise _error_of(refused.code, refused.read()) from None
        except (OSError, ValueError, HTTPException) as error:
            if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
                raise ServiceError(
                    f"this machine does not trust the certificate of {self._url}: for a certificate of the service's "
                    "own, pass the file from the curator as cafile="
                ) from None
            raise ServiceError(
                f"{self._url} sent no readable response: check that it is the address of a service"
            ) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A service never redirects: whoever does would be sent the token."""

    def redirect_request(self, *given: Any) -> None:
        return None


def connect(url: str, token: str, *, timeout: float = 900.0, cafile: str | None = None) -> ServiceConnection:
    """Connect to a service, as an analyst with a token.

    Parameters
    ----------
    url : str
        Its address, `https://…`; `http://` to this machine alone.
    token : str
        As the curator gave it.
    timeout : float
        Seconds to wait for an answer.
    cafile : str, optional
        A file of certificates to trust besides those of the system, where the service has one of its own.

    Returns
    -------
    ServiceConnection
        With `release`, `sql`, `bill`, `quote`, `remaining`, `history` and `sources`.

    Raises
    ------
    ServiceError
        When there is no service, or it does not know the token.

    Notes
    -----
    Certificates are verified, always.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")):
        raise ServiceError(f"{url} would send the token unencrypted: use https://, or http:// to this machine only")
    try:
        context = ssl.create_default_context()
        if cafile is not None:
            context.load_verify_locations(cafile)
    except (OSError, ssl.SSLError):
        raise ServiceError(f"{cafile} holds no certificates in PEM") from None
    return ServiceConnection(url, token, timeout, context)


def _error_of(status: int, body: bytes) -> errors.WpinqError:
    """The error of the library by the name that the service gives; else ServiceError."""
    try:
        told = json.loads(body)["error"]
        kind, message = str(told["kind"]), str(told["message"])
    except (ValueError, LookupError, TypeError):
        return ServiceError(f"the service sent no readable response (status {status})", status, "Unreadable")
    if kind == "Failed":
        return errors.EvaluationFailed(message)
    known = getattr(errors, kind, None)
    if not (isinstance(known, type) and issubclass(known, errors.WpinqError)):
        return ServiceError(message, status, kind)
    if known is errors.LanguageError:
        return errors.LanguageError(message, told.get("line", 0), told.get("column", 0))
    return known(message)


def _epsilon(text: str) -> Epsilon:
    return Epsilon(0 if text == "0" else parse_epsilon(text))


def _read(asked: Measurement | Compound, data: Mapping[str, Any]) -> Answers | Table | MarginalTables:
    """The result that a session would have given."""
    if isinstance(asked, Measurement):
        return Answers.from_json(data)
    return Table.from_json(data) if isinstance(asked, Tabulation) else MarginalTables.from_json(data)
