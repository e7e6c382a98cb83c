"""Routes for all users and for analysts: sources, explanations, releases, own budgets and history."""

from __future__ import annotations

from fastapi import APIRouter

from wpinq.kernel.analysts import AnalystBudgets
from wpinq.service import schemas
from wpinq.service.dependencies import AnalystUser, AnyUser, Dispatching, KnownCheck
from wpinq.service.middleware import GUARDED
from wpinq.service.serializers import balance_fields, event_fields, source_fields
from wpinq.service.users import ANALYST

router = APIRouter(prefix=GUARDED.rstrip("/"))  # in each route's own path, which the log shows


@router.get("/me", summary="The user of this token")
def me(user: AnyUser) -> schemas.UserResponse:
    return schemas.UserResponse(name=user.name, role=user.role)


@router.get("/sources", summary="The sources and their declarations")
def sources(user: AnyUser, dispatcher: Dispatching) -> list[schemas.SourceResponse]:
    suspended = dispatcher.ledger.suspended()
    return [schemas.SourceResponse(**source_fields(*each, suspended)) for each in dispatcher.declared.items()]


@router.post("/explain", summary="The cost and accuracy of a program; nothing is spent")
async def explain(
    request: schemas.ProgramRequest, user: AnyUser, check: KnownCheck, dispatcher: Dispatching
) -> schemas.ExplanationResponse:
    analyst = user.name if user.role == ANALYST else None
    return schemas.ExplanationResponse(**await dispatcher.explain(request.model_dump(), analyst, check))


@router.post("/release", summary="Debit the own budgets, and answer")
async def release(
    request: schemas.ReleaseRequest, user: AnalystUser, check: KnownCheck, dispatcher: Dispatching
) -> schemas.AnswersResponse:
    program = request.model_dump(exclude={"label"})
    return schemas.AnswersResponse(**await dispatcher.release(program, user.name, request.label, check))


@router.get("/remaining", summary="The own budgets")
def remaining(user: AnalystUser, dispatcher: Dispatching) -> list[schemas.BalanceResponse]:
    own = AnalystBudgets(dispatcher.ledger, user.name, dispatcher.declared)
    return [schemas.BalanceResponse(**balance_fields(each)) for each in own.balances()]


@router.get("/history", summary="The debits from the own budgets")
def history(user: AnalystUser, dispatcher: Dispatching) -> list[schemas.EventResponse]:
    own = AnalystBudgets(dispatcher.ledger, user.name, dispatcher.declared)
    return [schemas.EventResponse(**event_fields(each)) for each in own.history()]
