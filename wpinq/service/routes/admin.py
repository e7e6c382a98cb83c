"""What the curator does over HTTP: who may ask, with which budgets; what happened; which sources are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import FastAPI

from wpinq.errors import LedgerError
from wpinq.service.admitting import admit, set_budgets
from wpinq.service.bodies import AdmittedBody, BalanceBody, BudgetsBody, EventBody, NewCallerBody, OpenBody, TokenBody
from wpinq.service.callers import CuratorCaller, balance_body, event_body
from wpinq.service.front import Front
from wpinq.service.guard import GUARDED
from wpinq.service.refusals import Refusal
from wpinq.service.token_register import Caller, RegisterError

T = TypeVar("T")


def curate(made: FastAPI, front: Front) -> None:
    """Add what curators may ask for."""

    def told(work: Callable[[], T]) -> T:
        """The ledger and the register speak for themselves: the curator may know all that they say."""
        try:
            return work()
        except (LedgerError, RegisterError) as error:
            raise Refusal(409, type(error).__name__, str(error)) from None

    @made.get(f"{GUARDED}accounts", summary="How all budgets stand, of sources and of analysts (curator)")
    def accounts(caller: CuratorCaller) -> list[BalanceBody]:
        return [balance_body(each) for each in told(front.ledger.balances)]

    @made.put(f"{GUARDED}accounts", summary="Set budgets of sources (curator)")
    def set_source_budgets(given: BudgetsBody, caller: CuratorCaller) -> list[BalanceBody]:
        told(lambda: set_budgets(front.ledger, given.budgets))
        return accounts(caller)

    @made.get(f"{GUARDED}events", summary="What happened to all accounts (curator)")
    def events(caller: CuratorCaller) -> list[EventBody]:
        return [event_body(each) for each in told(front.ledger.events)]

    @made.get(f"{GUARDED}callers", summary="Who may ask, with which budgets (curator)")
    def callers(caller: CuratorCaller) -> list[AdmittedBody]:
        return told(lambda: list(map(admitted, front.register.people())))

    def admitted(one: Caller) -> AdmittedBody:
        budgets = list(map(balance_body, front.ledger.balances(one.name)))
        return AdmittedBody(name=one.name, role=one.role, added=one.added, admitted=one.admitted, budgets=budgets)

    @made.post(f"{GUARDED}callers", summary="Give somebody a token, shown this once (curator)", status_code=201)
    def add(given: NewCallerBody, caller: CuratorCaller) -> TokenBody:
        token = told(lambda: admit(front.register, front.ledger, given.name, given.role, given.budgets))
        return TokenBody(name=given.name, token=token)

    @made.put(f"{GUARDED}callers/{{name}}/budgets", summary="Set budgets of an analyst (curator)")
    def set_analyst_budgets(name: str, given: BudgetsBody, caller: CuratorCaller) -> list[BalanceBody]:
        known(name)
        told(lambda: set_budgets(front.ledger, given.budgets, name))
        return [balance_body(each) for each in front.ledger.balances(name)]

    @made.post(f"{GUARDED}callers/{{name}}/token", summary="A new token for somebody, shown this once (curator)")
    def renew(name: str, caller: CuratorCaller) -> TokenBody:
        known(name)
        return TokenBody(name=name, token=told(lambda: front.register.renew(name)))

    @made.delete(f"{GUARDED}callers/{{name}}", summary="Turn somebody away from now on (curator)", status_code=204)
    def remove(name: str, caller: CuratorCaller) -> None:
        known(name)
        told(lambda: front.register.remove(name))

    @made.post(f"{GUARDED}open", summary="Let sources answer analysts again that a failure closed (curator)")
    def reopen(given: OpenBody, caller: CuratorCaller) -> bool:
        return told(lambda: front.ledger.open_to_analysts(given.account))

    def known(name: str) -> None:
        if name not in {each.name for each in front.register.people()}:
            raise Refusal(404, "NoSuchCaller", "the register has nobody of this name")
