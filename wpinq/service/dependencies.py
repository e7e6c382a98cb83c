"""Who asks, as the endpoints of the web application take it, and in which form they tell of budgets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from fastapi import Depends, Request

from wpinq.kernel.prepare import DeclaredSource
from wpinq.language.write import write_source
from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import format_epsilon
from wpinq.service.app import Check
from wpinq.service.errors import Refusal
from wpinq.service.schemas import BalanceResponse, EventResponse, SourceResponse
from wpinq.service.users import ANALYST, CURATOR, Caller


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["state"]["caller"]  # the guard let nobody through without
    return caller


def _curator(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.role != CURATOR:
        raise Refusal(403, "NotCurator", "this is for the curator")
    return caller


def _analyst(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.role != ANALYST:
        raise Refusal(403, "NotAnalyst", "this is for analysts: a curator has no budget to spend; add an analyst")
    return caller


def _check_known(request: Request) -> Check:
    check: Check = request.scope["state"]["check_known"]
    return check


KnownCheck = Annotated[Check, Depends(_check_known)]
"""Refuses the caller when their token is known no more."""

AnyCaller = Annotated[Caller, Depends(_caller)]
AnalystCaller = Annotated[Caller, Depends(_analyst)]
CuratorCaller = Annotated[Caller, Depends(_curator)]


def balance_response(balance: Balance) -> BalanceResponse:
    """How a budget stands."""
    budget, spent, left = map(format_epsilon, (balance.budget, balance.spent, balance.remaining))
    return BalanceResponse(account=balance.account, unit=balance.unit, budget=budget, spent=spent, remaining=left)


def event_response(event: Event) -> EventResponse:
    """What happened to an account."""
    return EventResponse(
        number=event.sequence,
        time=event.time,
        kind=event.kind,
        account=event.account,
        amount=format_epsilon(event.amount),
        description=event.description,
        label=event.label,
    )


def source_response(name: str, held: DeclaredSource, closed: Collection[str]) -> SourceResponse:
    """A source as it was declared."""
    word, _, version = held.version.partition(" ")
    return SourceResponse(
        name=name,
        account=held.source.account,
        declaration=write_source(held.source),
        unit=held.unit + held.source.rows_of_unit,
        version=version if word == "declared" else None,
        open=held.source.account not in closed,
    )
