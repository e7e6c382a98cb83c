"""The OpenAPI document: whole, and what the service does."""

from __future__ import annotations

from typing import Any

from tests.service.conftest import Peopled
from tests.support.service import COUNT


def references(data: Any) -> set[str]:
    """All that a document points to."""
    if isinstance(data, dict):
        own = {data["$ref"]} if "$ref" in data else set()
        return own.union(*map(references, data.values())) if data else own
    return set().union(*map(references, data)) if isinstance(data, list) and data else set()


def test_every_address_has_schemas_security_and_errors(peopled: Peopled) -> None:
    document = peopled.service.ask("GET", "openapi.json", None).json()
    schemas = document["components"]["schemas"]
    assert {each.rpartition("/")[2] for each in references(document)} <= set(schemas)
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, methods in document["paths"].items():
        assert path.startswith("/v1/")
        for method, told in methods.items():
            assert told["summary"], path
            assert told["security"] == [{"HTTPBearer": []}], path
            assert ("requestBody" in told) == (method in ("post", "put") and path != "/v1/users/{name}/token"), path
            for status in ("400", "401", "403", "409", "413", "429", "500", "503"):
                held = told["responses"][status]["content"]["application/json"]["schema"]
                assert held == {"$ref": "#/components/schemas/ErrorResponse"}, path
            (success,) = [each for each in told["responses"] if each.startswith("2")]
            if success != "204":
                assert told["responses"][success]["content"]["application/json"]["schema"], path
    for name, schema in schemas.items():
        if name.endswith(("Request", "Response")):
            assert schema["type"] == "object"
            assert schema.get("description"), name
    assert "422" not in str(document["paths"])  # what is not taken is refused in our shape


def test_answers_have_the_fields_that_the_document_names(peopled: Peopled) -> None:
    schemas = peopled.service.ask("GET", "openapi.json", None).json()["components"]["schemas"]
    asked = {"program": COUNT.format(name="x", epsilon="0.01")}
    for path, schema in (("v1/explain", "ExplanationResponse"), ("v1/release", "AnswersResponse")):
        found = peopled.service.ask("POST", path, peopled.alice, asked).json()
        assert set(found) == set(schemas[schema]["properties"])
    assert set(found["answers"]["x"]) == set(schemas["ReleasedResponse"]["properties"])
    assert set(found["answers"]["x"]["series"][0]) == set(schemas["SeriesResponse"]["properties"])
