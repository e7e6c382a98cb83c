"""What the curator does over HTTP: who may ask, with which budgets; what happened; which sources are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import FastAPI

from wpinq.errors import LedgerError
from wpinq.service.app import Front
from wpinq.service.dependencies import CuratorCaller, balance_response, event_response
from wpinq.service.errors import Refusal
from wpinq.service.middleware import GUARDED
from wpinq.service.schemas import (
    AdmittedResponse,
    BalanceResponse,
    BudgetsRequest,
    EventResponse,
    NewUserRequest,
    ResumeRequest,
    TokenResponse,
)
from wpinq.service.users import Caller, UsersError, admit, set_budgets

T = TypeVar("T")


def curate(made: FastAPI, front: Front) -> None:
    """Add what curators may ask for."""

    def told(work: Callable[[], T]) -> T:
        """The ledger and the register speak for themselves: the curator may know all that they say."""
        try:
            return work()
        except (LedgerError, UsersError) as error:
            raise Refusal(409, type(error).__name__, str(error)) from None

    @made.get(f"{GUARDED}accounts", summary="How all budgets stand, of sources and of analysts (curator)")
    def accounts(caller: CuratorCaller) -> list[BalanceResponse]:
        return [balance_response(each) for each in told(front.ledger.balances)]

    @made.put(f"{GUARDED}accounts", summary="Set budgets of sources (curator)")
    def set_source_budgets(given: BudgetsRequest, caller: CuratorCaller) -> list[BalanceResponse]:
        told(lambda: set_budgets(front.ledger, given.budgets))
        return accounts(caller)

    @made.get(f"{GUARDED}events", summary="What happened to all accounts (curator)")
    def events(caller: CuratorCaller) -> list[EventResponse]:
        return [event_response(each) for each in told(front.ledger.events)]

    @made.get(f"{GUARDED}callers", summary="Who may ask, with which budgets (curator)")
    def callers(caller: CuratorCaller) -> list[AdmittedResponse]:
        return told(lambda: list(map(admitted, front.register.people())))

    def admitted(one: Caller) -> AdmittedResponse:
        budgets = list(map(balance_response, front.ledger.balances(one.name)))
        return AdmittedResponse(name=one.name, role=one.role, added=one.added, admitted=one.admitted, budgets=budgets)

    @made.post(f"{GUARDED}callers", summary="Give somebody a token, shown this once (curator)", status_code=201)
    def add(given: NewUserRequest, caller: CuratorCaller) -> TokenResponse:
        token = told(lambda: admit(front.register, front.ledger, given.name, given.role, given.budgets))
        return TokenResponse(name=given.name, token=token)

    @made.put(f"{GUARDED}callers/{{name}}/budgets", summary="Set budgets of an analyst (curator)")
    def set_analyst_budgets(name: str, given: BudgetsRequest, caller: CuratorCaller) -> list[BalanceResponse]:
        known(name)
        told(lambda: set_budgets(front.ledger, given.budgets, name))
        return [balance_response(each) for each in front.ledger.balances(name)]

    @made.post(f"{GUARDED}callers/{{name}}/token", summary="A new token for somebody, shown this once (curator)")
    def renew(name: str, caller: CuratorCaller) -> TokenResponse:
        known(name)
        return TokenResponse(name=name, token=told(lambda: front.register.renew(name)))

    @made.delete(f"{GUARDED}callers/{{name}}", summary="Turn somebody away from now on (curator)", status_code=204)
    def remove(name: str, caller: CuratorCaller) -> None:
        known(name)
        told(lambda: front.register.remove(name))

    @made.post(f"{GUARDED}open", summary="Let sources answer analysts again that a failure closed (curator)")
    def reopen(given: ResumeRequest, caller: CuratorCaller) -> bool:
        return told(lambda: front.ledger.resume(given.account))

    def known(name: str) -> None:
        if name not in {each.name for each in front.register.people()}:
            raise Refusal(404, "NoSuchCaller", "the register has nobody of this name")
