"""Who asks, as the endpoints of the web application take it, and in which form they tell of budgets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from fastapi import Depends, Request

from wpinq.kernel.orders import DeclaredSource
from wpinq.language.unparse import write_source
from wpinq.measure.epsilon import format_epsilon
from wpinq.measure.statement import Balance, Event
from wpinq.service.bodies import BalanceBody, EventBody, SourceBody
from wpinq.service.front import Check
from wpinq.service.refusals import Refusal
from wpinq.service.token_register import ANALYST, CURATOR, Caller


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


def balance_body(balance: Balance) -> BalanceBody:
    """How a budget stands."""
    budget, spent, left = map(format_epsilon, (balance.budget, balance.spent, balance.remaining))
    return BalanceBody(account=balance.account, unit=balance.unit, budget=budget, spent=spent, remaining=left)


def event_body(event: Event) -> EventBody:
    """What happened to an account."""
    return EventBody(
        number=event.sequence,
        time=event.time,
        kind=event.kind,
        account=event.account,
        amount=format_epsilon(event.amount),
        description=event.description,
        label=event.label,
    )


def source_body(name: str, held: DeclaredSource, closed: Collection[str]) -> SourceBody:
    """A source as it was declared."""
    word, _, version = held.version.partition(" ")
    return SourceBody(
        name=name,
        account=held.source.account,
        declaration=write_source(held.source),
        unit=held.unit + held.source.rows_of_unit,
        version=version if word == "declared" else None,
        open=held.source.account not in closed,
    )
