"""Routes for all users and for analysts: sources, explanations, releases, own budgets and history."""

from __future__ import annotations

from fastapi import APIRouter

from wpinq.kernel.analysts import AnalystBudgets
from wpinq.service.dependencies import AnalystUser, AnyUser, Dispatching, KnownCheck
from wpinq.service.middleware import GUARDED
from wpinq.service.schemas import (
    AnswersResponse,
    BalanceResponse,
    EventResponse,
    ExplanationResponse,
    ProgramRequest,
    ReleaseRequest,
    SourceResponse,
    UserResponse,
)
from wpinq.service.serializers import balance_fields, event_fields, source_fields
from wpinq.service.users import ANALYST

router = APIRouter(prefix=GUARDED.rstrip("/"))  # in each route's own path, which the log shows


@router.get("/me", summary="The user of this token")
def me(user: AnyUser) -> UserResponse:
    return UserResponse(name=user.name, role=user.role)


@router.get("/sources", summary="The sources and their declarations")
def sources(user: AnyUser, dispatcher: Dispatching) -> list[SourceResponse]:
    suspended = dispatcher.ledger.suspended()
    return [SourceResponse(**source_fields(*each, suspended)) for each in dispatcher.declared.items()]


@router.post("/explain", summary="The cost and accuracy of a program; nothing is spent")
async def explain(
    request: ProgramRequest, user: AnyUser, check: KnownCheck, dispatcher: Dispatching
) -> ExplanationResponse:
    analyst = user.name if user.role == ANALYST else None
    return ExplanationResponse(**await dispatcher.explain(request.model_dump(), analyst, check))


@router.post("/release", summary="Debit the own budgets, and answer")
async def release(
    request: ReleaseRequest, user: AnalystUser, check: KnownCheck, dispatcher: Dispatching
) -> AnswersResponse:
    program = request.model_dump(exclude={"label"})
    return AnswersResponse(**await dispatcher.release(program, user.name, request.label, check))


@router.get("/remaining", summary="The own budgets")
def remaining(user: AnalystUser, dispatcher: Dispatching) -> list[BalanceResponse]:
    own = AnalystBudgets(dispatcher.ledger, user.name, dispatcher.declared)
    return [BalanceResponse(**balance_fields(each)) for each in own.balances()]


@router.get("/history", summary="The debits from the own budgets")
def history(user: AnalystUser, dispatcher: Dispatching) -> list[EventResponse]:
    own = AnalystBudgets(dispatcher.ledger, user.name, dispatcher.declared)
    return [EventResponse(**event_fields(each)) for each in own.history()]
