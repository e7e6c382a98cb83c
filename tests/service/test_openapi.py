"""The OpenAPI document: whole, valid, with examples that the service gives, and one for as long as it is /v1.

`python -m tests.service.test_openapi` asks a service for the examples anew, and writes them and the interface.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from tests.service.conftest import Peopled
from tests.support.service import COUNT, ROOT, RunningService, configured, running
from wpinq.kernel.ledger.debit import EXHAUSTED
from wpinq.kernel.sandbox.evaluation import IS_SUSPENDED
from wpinq.service import errors

SERVICE = ROOT / "wpinq" / "service"
EXAMPLES = SERVICE / "examples.json"
INTERFACE = Path(__file__).with_name("interface.txt")

ERROR = "#/components/schemas/ErrorResponse"
SUCCESS = ("200", "201", "204")


def references(data: Any) -> set[str]:
    """All that a document points to."""
    if isinstance(data, dict):
        own = {data["$ref"]} if "$ref" in data else set()
        return own.union(*map(references, data.values())) if data else own
    return set().union(*map(references, data)) if isinstance(data, list) and data else set()


def routes(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            yield f"{method.upper()} {path}", route


@pytest.fixture(scope="module")
def document(peopled: Peopled) -> dict[str, Any]:
    return dict(peopled.service.ask("GET", "openapi.json", None).json())


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    validate(document)
    with pytest.raises(Exception, match=r"is not valid|is a required property"):
        validate({**document, "paths": {"/v1/me": {"get": {"responses": {"200": {}}}}}})


def test_every_address_has_schemas_security_and_errors(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert {each.rpartition("/")[2] for each in references(document)} <= set(schemas)
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for name, told in routes(document):
        method, path = name.split()
        assert path.startswith("/v1/")
        assert told["summary"], name
        assert told["security"] == [{"HTTPBearer": []}], name
        bare = {"POST /v1/users/{name}/token"}
        assert ("requestBody" in told) == (method in ("POST", "PUT") and name not in bare), name
        assert {"400", "401", "403", "408", "413", "429", "500", "default"} <= set(told["responses"]), name
        assert {status for status, each in told["responses"].items() if "headers" in each} >= {"429"}, name
        assert all(each["schema"]["examples"] for each in told.get("parameters", ()) if each["in"] == "path"), name
        (success,) = set(told["responses"]) & set(SUCCESS)
        if success != "204":
            assert told["responses"][success]["content"]["application/json"]["schema"], name
    for name, schema in schemas.items():
        if name.endswith(("Request", "Response")):
            assert schema["type"] == "object"
            assert schema.get("description"), name
    assert "422" not in str(document["paths"])  # what is not taken is refused in our shape


def fault(document: dict[str, Any], schema: dict[str, Any], value: Any) -> str:
    """The first fault of a value by a schema of the document."""
    whole = {**schema, "components": document["components"]}
    return next((each.message for each in OAS31Validator(whole).iter_errors(value)), "")


def test_every_route_has_examples_that_its_schemas_allow(document: dict[str, Any]) -> None:
    for name, route in routes(document):
        held = [route["requestBody"]["content"]["application/json"]] if "requestBody" in route else []
        held += [each["content"]["application/json"] for s, each in route["responses"].items() if s in ("200", "201")]
        for content in held:
            assert fault(document, content["schema"], content["example"]) == "", name
        for status, each in route["responses"].items():
            if status not in (*SUCCESS, "default"):
                content = each["content"]["application/json"]
                assert content["schema"] == {"$ref": ERROR}
                assert content["examples"], (name, status)
                for kind, example in content["examples"].items():
                    assert fault(document, content["schema"], example["value"]) == "", (name, status)
                    assert example["value"]["error"]["kind"] == kind
    assert fault(document, {"$ref": ERROR}, {"error": {"kind": "Busy"}}) != ""


def refusals() -> Iterator[tuple[str, int, re.Pattern[str]]]:
    """Kind, status and words of the refusals that the service writes itself."""
    for path in SERVICE.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Refusal" and len(node.args) >= 3:
                status, kind, words = node.args[:3]
                if isinstance(status, ast.Constant) and isinstance(kind, ast.Constant):
                    yield kind.value, status.value, words_of(constants.get(getattr(words, "id", ""), words))


def words_of(node: ast.expr) -> re.Pattern[str]:
    """The texts that an expression may have."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return re.compile("".join(re.escape(each.value) if isinstance(each, ast.Constant) else ".*" for each in parts))


def test_every_refusal_of_the_service_is_an_example() -> None:
    told = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    written = list(refusals())
    assert len(written) > 15
    kinds = {kind for kind, *_ in written} | {each.__name__ for each in (*errors._CONFLICTS, *errors._MISTAKES)}
    assert kinds <= set(told["errors"])
    for kind, error in told["errors"].items():
        own = [(status, words) for its, status, words in written if its == kind]
        if own:
            assert any(s == error["status"] and words.fullmatch(error["message"]) for s, words in own), kind
    assert told["errors"]["SourceSuspended"]["message"] == IS_SUSPENDED
    assert told["errors"]["SourceExhausted"]["message"] == EXHAUSTED
    used = set(told["every route"]).union(*(each["errors"] for each in told["routes"].values()))
    assert used == set(told["errors"])


def exchanged(service: RunningService) -> dict[str, Any]:
    """The stored examples, with the responses and the words that a new service gives."""
    told = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    alice, carol = service.admit("alice", "edges=1"), service.admit("carol", curator=True)
    dora = service.admit("dora")
    for name, route in told["routes"].items():
        method, path = name.replace("{name}", "bob").split()
        curated = {"NotCurator", "NoSuchUser"} & {*route["errors"]}
        more = "?days=30&roll=true" if path.endswith("/token") else "?limit=2" if path.endswith("s") else ""
        found = service.ask(method, path[1:] + more, carol if curated else alice, route.get("request"))
        assert found.status_code in (200, 201, 204), (name, found.text)
        route["response"] = shortened(found.json()) if found.content else None
    count = "var x = edges.Select(e => e.src).NoisyCount({}, over: [1]);"
    provoked: dict[str, tuple[str, str, str | None, Any]] = {
        "NoToken": ("GET", "v1/me", None, None),
        "NotCurator": ("GET", "v1/users", alice, None),
        "NotAnalyst": ("GET", "v1/history", carol, None),
        "NoSuchUser": ("DELETE", "v1/users/erin", carol, None),
        "UsersError": ("POST", "v1/users", carol, {"name": "alice", "budgets": {"edges": "1"}}),
        "LedgerError": ("POST", "v1/resume", carol, {"account": "people"}),
        "Malformed": ("GET", "v1/history?limit=0", alice, None),
        "LanguageError": ("POST", "v1/explain", alice, {"program": "var x = edges.Selec(e => e.src);"}),
        "PlanError": ("POST", "v1/release", alice, {"program": "var x = edges.NoisyCount(0.1);"}),
        "EpsilonError": ("PUT", "v1/accounts", carol, {"budgets": {"edges": "-1"}}),
        "BudgetExceeded": ("POST", "v1/release", alice, {"program": count.format(9)}),
        "NoBudget": ("POST", "v1/release", dora, {"program": count.format("0.1")}),
        "TooLarge": ("POST", "v1/explain", alice, {"program": " " * 300_000}),
    }
    for kind, (method, path, token, body) in provoked.items():
        answer = service.ask(method, path, token, body)
        error = answer.json()["error"]
        assert error.pop("kind") == kind, (kind, answer.text)
        told["errors"][kind] = {"status": answer.status_code, **error}
    return dict(told)


def shortened(data: Any) -> Any:
    """Two items of each list, no token, and of a saved answer only its format."""
    if isinstance(data, list):
        return [shortened(each) for each in data[:2]]
    if isinstance(data, dict) and "format" in data:
        return {name: data[name] for name in ("format", "version")}
    if isinstance(data, dict):
        return {name: "wpinq_..." if name == "token" else shortened(each) for name, each in data.items()}
    return data


def without_chance(data: Any) -> Any:
    """Numbers of noise and times by their kind alone."""
    if isinstance(data, dict):
        return {name: without_chance(each) for name, each in data.items()}
    if isinstance(data, list):
        return [without_chance(each) for each in data]
    if isinstance(data, str):
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "time", data)
    return "number" if isinstance(data, float) else data


def test_the_examples_are_what_the_service_answers(tmp_path: Path) -> None:
    stored = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    with running(configured(tmp_path, margin=8.0)) as service:
        assert without_chance(exchanged(service)) == without_chance(stored)
    assert "wpinq_" not in EXAMPLES.read_text(encoding="utf-8").replace("wpinq_...", "")


def interface(document: dict[str, Any]) -> list[str]:
    """Routes, parameters, fields and kinds of error, a line each, without words for people."""
    found = []
    for name, route in routes(document):
        parameters = [f"{each['name']}{'' if each['required'] else '?'}" for each in route.get("parameters", ())]
        body = sorted(references(route.get("requestBody", {})))
        success = sorted(set(route["responses"]) & set(SUCCESS))
        found.append(" ".join([name, *parameters, *body, "->", *success, *sorted(references(route["responses"]))]))
        for status, each in route["responses"].items():
            kinds = each.get("content", {}).get("application/json", {}).get("examples", ())
            found += [f"{name} -> {status} {kind}" for kind in kinds]
    for name, schema in document["components"]["schemas"].items():
        for field, type_ in schema["properties"].items():
            required = "" if field in schema.get("required", ()) else "?"
            found.append(f"{name}.{field}{required} {json.dumps(without_words(type_), sort_keys=True)}")
    return sorted(each.replace("#/components/schemas/", "") for each in found)


def without_words(schema: Any) -> Any:
    if isinstance(schema, dict):
        left_out = ("title", "description", "examples")
        return {name: without_words(each) for name, each in schema.items() if name not in left_out}
    return [without_words(each) for each in schema] if isinstance(schema, list) else schema


def test_the_interface_of_this_version_stays(document: dict[str, Any]) -> None:
    """A line that goes or changes breaks clients of /v1: keep it, or add routes below /v2. Further lines are stored."""
    assert interface(document) == INTERFACE.read_text(encoding="utf-8").splitlines()


def test_answers_have_the_fields_that_the_document_names(peopled: Peopled, document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    asked = {"program": COUNT.format(name="x", epsilon="0.01")}
    for path, schema in (("v1/explain", "ExplanationResponse"), ("v1/release", "AnswersResponse")):
        found = peopled.service.ask("POST", path, peopled.alice, asked).json()
        assert set(found) == set(schemas[schema]["properties"])
    assert set(found["answers"]["x"]) == set(schemas["ReleasedResponse"]["properties"])
    assert set(found["answers"]["x"]["series"][0]) == set(schemas["SeriesResponse"]["properties"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, running(configured(Path(folder), margin=8.0)) as started:
        EXAMPLES.write_text(json.dumps(exchanged(started), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        started.stop()
        started.start()  # with the new examples
        shown = started.ask("GET", "openapi.json", None).json()
        INTERFACE.write_text("\n".join(interface(shown)) + "\n", encoding="utf-8")
