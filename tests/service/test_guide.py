"""The guide of the page: examples that can be released as they stand, and all steps."""

from __future__ import annotations

from tests.support.parameters import for_each
from wpinq.kernel.prepare import DeclaredSource, prepare_batch
from wpinq.kernel.sandbox.admission import Limits, admit
from wpinq.language import parse
from wpinq.plan.operator import REGISTRY
from wpinq.service.schemas import examples, steps
from wpinq.sinks.sink import SINKS

COUNT = "Number of records"


@for_each(
    ("declared", "titles"),
    [
        (
            "edges(src: int, dst: int) with facts = [simple, unit_weights], records_at_most = 1000",
            "Degree distribution",
        ),
        (
            "links(a: str, b: str) with facts = [symmetric, unit_weights], unit_weight = 2, records_at_most = 1000",
            "Degree distribution",
        ),
        ("pairs(x: int, y: int) with records_at_most = 1000", "Mean of x, Median of x, Histogram of x"),
        (
            'people(user_id: int, sex: category("f", "m")?, pay: float?) with records_at_most = 1000',
            "Records by sex, Mean of pay, Median of pay",
        ),
        ('visits(page: str, day: date) with person = "who", at_most = 3, records_at_most = 1000', "Records by page"),
        ('visits(who: int, fee: int) with person = "who", at_most = 3, nested = true, records_at_most = 1000', ""),
        ("flags(on: bool?) with records_at_most = 1000", "Records by on"),
        ("numbers: int with records_at_most = 1000", ""),
        ("days(at: timestamp, parts: list[int, 3]) with records_at_most = 1000", ""),
    ],
)
def test_examples_are_admitted_as_they_stand(declared: str, titles: str) -> None:
    ((name, query),) = parse(f"source {declared};").sources.items()
    source = query.plan.operator
    found = examples(source)  # type: ignore[arg-type]  # a source's
    assert [example.title for example in found] == [COUNT, *filter(None, titles.split(", "))]
    known = {name: DeclaredSource(source, "", source.unit)}  # type: ignore[arg-type, attr-defined]
    for example in found:
        releases = parse(example.program, sources={name: query}).releases
        batch = prepare_batch(dict(releases), known, False)
        for prepared in batch.prepared:
            admit(prepared, prepared.keys_at_once, Limits(max_record_bytes=100))


def test_the_guide_has_every_operator_and_release() -> None:
    found = {step.group: [] for step in steps()}
    for step in steps():
        found[step.group].append(step.form.partition("(")[0])
        assert step.form
    assert found["Operators"] == sorted(REGISTRY)
    for sink in SINKS.values():
        words = [way.name for way in sink.syntax]
        if sink.bounded_work:
            assert set(words) <= set(found["Releases"])
        else:
            assert sink.name in found["Not released by this service"][0]
