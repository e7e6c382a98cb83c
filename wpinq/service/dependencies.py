"""Dependencies of the routes: the user of a request, by role, and the dispatcher."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from wpinq.service.dispatcher import Check, Dispatcher
from wpinq.service.errors import Refusal
from wpinq.service.users import ANALYST, CURATOR, User


def _user(request: Request) -> User:
    user: User = request.scope["state"]["user"]  # the middleware refused everybody else
    return user


def _curator(user: Annotated[User, Depends(_user)]) -> User:
    if user.role != CURATOR:
        raise Refusal(403, "NotCurator", "this is for the curator")
    return user


def _analyst(user: Annotated[User, Depends(_user)]) -> User:
    if user.role != ANALYST:
        raise Refusal(403, "NotAnalyst", "this is for analysts: a curator has no budget to spend; add an analyst")
    return user


def _check_known(request: Request) -> Check:
    check: Check = request.scope["state"]["check_known"]
    return check


def _dispatcher(request: Request) -> Dispatcher:
    dispatcher: Dispatcher = request.app.state.dispatcher
    return dispatcher


AnyUser = Annotated[User, Depends(_user)]
AnalystUser = Annotated[User, Depends(_analyst)]
CuratorUser = Annotated[User, Depends(_curator)]
KnownCheck = Annotated[Check, Depends(_check_known)]
"""Refuses a user whose token was revoked since."""
Dispatching = Annotated[Dispatcher, Depends(_dispatcher)]
