"""Routes for curators: users, budgets, events, and sources to resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import APIRouter

from wpinq.errors import LedgerError
from wpinq.service import schemas
from wpinq.service.dependencies import CuratorUser, Dispatching
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import Refusal
from wpinq.service.middleware import GUARDED
from wpinq.service.serializers import balance_fields, event_fields
from wpinq.service.users import UsersError, admit, set_budgets
from wpinq.service.users import remove as remove_user
from wpinq.service.users import renew as renew_token

router = APIRouter(prefix=GUARDED.rstrip("/"))  # in each route's own path, which the log shows


@contextmanager
def _own_words() -> Iterator[None]:
    """Show errors of the ledger and of the users in their own words, which a curator may read."""
    try:
        yield
    except (LedgerError, UsersError) as error:
        raise Refusal(409, type(error).__name__, str(error)) from None


def _balances(dispatcher: Dispatcher, analyst: str | None = None) -> list[schemas.BalanceResponse]:
    return [schemas.BalanceResponse(**balance_fields(each)) for each in dispatcher.ledger.balances(analyst)]


def _check_user(dispatcher: Dispatcher, name: str) -> None:
    if name not in {each.name for each in dispatcher.users.all()}:
        raise Refusal(404, "NoSuchUser", "there is no user of this name")


@router.get("/accounts", summary="All budgets, of sources and of analysts (curator)")
def accounts(user: CuratorUser, dispatcher: Dispatching) -> list[schemas.BalanceResponse]:
    with _own_words():
        return _balances(dispatcher)


@router.put("/accounts", summary="Set budgets of sources (curator)")
def set_source_budgets(
    request: schemas.BudgetsRequest, user: CuratorUser, dispatcher: Dispatching
) -> list[schemas.BalanceResponse]:
    with _own_words():
        set_budgets(dispatcher.ledger, request.budgets, actor=user.name)
        return _balances(dispatcher)


@router.get("/events", summary="The events of all accounts (curator)")
def events(user: CuratorUser, dispatcher: Dispatching) -> list[schemas.EventResponse]:
    with _own_words():
        return [schemas.EventResponse(**event_fields(each)) for each in dispatcher.ledger.events()]


@router.get("/users", summary="The users, with their budgets (curator)")
def users(user: CuratorUser, dispatcher: Dispatching) -> list[schemas.AdmittedResponse]:
    with _own_words():
        return [
            schemas.AdmittedResponse(
                name=each.name,
                role=each.role,
                added=each.added,
                admitted=each.admitted,
                budgets=_balances(dispatcher, each.name),
            )
            for each in dispatcher.users.all()
        ]


@router.post("/users", summary="Add a user; the token is shown this once (curator)", status_code=201)
def add(request: schemas.NewUserRequest, user: CuratorUser, dispatcher: Dispatching) -> schemas.TokenResponse:
    with _own_words():
        token = admit(dispatcher.users, dispatcher.ledger, request.name, request.role, request.budgets, user.name)
    return schemas.TokenResponse(name=request.name, token=token)


@router.put("/users/{name}/budgets", summary="Set budgets of an analyst (curator)")
def set_analyst_budgets(
    name: str, request: schemas.BudgetsRequest, user: CuratorUser, dispatcher: Dispatching
) -> list[schemas.BalanceResponse]:
    with _own_words():
        _check_user(dispatcher, name)
        set_budgets(dispatcher.ledger, request.budgets, name, user.name)
        return _balances(dispatcher, name)


@router.post("/users/{name}/token", summary="A new token for a user, shown this once (curator)")
def renew(name: str, user: CuratorUser, dispatcher: Dispatching) -> schemas.TokenResponse:
    with _own_words():
        _check_user(dispatcher, name)
        return schemas.TokenResponse(name=name, token=renew_token(dispatcher.users, dispatcher.ledger, name, user.name))


@router.delete("/users/{name}", summary="Revoke the token of a user (curator)", status_code=204)
def remove(name: str, user: CuratorUser, dispatcher: Dispatching) -> None:
    with _own_words():
        _check_user(dispatcher, name)
        remove_user(dispatcher.users, dispatcher.ledger, name, user.name)


@router.post("/resume", summary="Resume the sources of an account that a failure suspended (curator)")
def resume(request: schemas.ResumeRequest, user: CuratorUser, dispatcher: Dispatching) -> bool:
    with _own_words():
        return dispatcher.ledger.resume(request.account, actor=user.name)
