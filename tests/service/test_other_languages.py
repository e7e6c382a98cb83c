"""The programs of docs/other_languages.md: TypeScript runs, and the requests of R are those of the OpenAPI document."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_examples import blocks
from tests.service.conftest import Peopled
from tests.service.test_openapi import fault
from tests.support.service import ROOT

PAGE = (ROOT / "docs" / "other_languages.md").read_text(encoding="utf-8")
PROGRAMS = {block.language: block.code for block in blocks(PAGE)}


def requests_of_r(code: str) -> list[tuple[str, dict[str, str] | None]]:
    """Path and body of each call of `ask`; a body is a list of texts and variables."""
    texts = dict(re.findall(r'^(\w+) <- "(.*)"$', code, flags=re.M))
    found = []
    for path, body in re.findall(r'\bask\("([^"]+)"(?:, list\(([^)]*)\))?\)', code):
        fields = re.findall(r'(\w+) = (?:"([^"]*)"|(\w+))', body)
        found.append((path, {name: text or texts[variable] for name, text, variable in fields} if body else None))
    return found


def test_the_requests_of_r_are_those_of_the_document(peopled: Peopled) -> None:
    document: dict[str, Any] = peopled.service.ask("GET", "openapi.json", None).json()
    requests = requests_of_r(PROGRAMS["r"])
    assert [path for path, _ in requests] == ["/v1/sources", "/v1/explain", "/v1/release", "/v1/remaining"]
    token = peopled.service.admit("statistician", "edges=1")
    for path, body in requests:
        method = "GET" if body is None else "POST"
        route = document["paths"][path][method.lower()]
        if body is not None:
            schema = route["requestBody"]["content"]["application/json"]["schema"]
            assert fault(document, schema, body) == ""
            assert fault(document, schema, {**body, "query": ""}) != ""
        assert peopled.service.ask(method, path[1:], token, body).status_code == 200
    fields = {name for schema in document["components"]["schemas"].values() for name in schema["properties"]}
    assert set(re.findall(r"\$(\w+)", PROGRAMS["r"])) <= {*fields, "total"}


def test_the_program_in_typescript_runs(peopled: Peopled, tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("node runs the program of this test")
    types = r"^type .*$|\??: (object|string|Promise<any>|Row\[\])"
    without_types = re.sub(types, "", PROGRAMS["typescript"], flags=re.M)
    (tmp_path / "program.mjs").write_text(without_types, encoding="utf-8")

    def run(*budgets: str) -> subprocess.CompletedProcess[str]:
        token = peopled.service.admit("developer" if budgets else "trainee", *budgets)
        environment = {"WPINQ_URL": peopled.service.address, "WPINQ_TOKEN": token}
        command = [node, "program.mjs"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    done = run("edges=1")
    assert done.stderr == ""
    declaration, *bill, row, left = done.stdout.splitlines()
    assert declaration.startswith("source edges(")
    assert bill[0] == "edges: 0.1"
    estimate, low, high = map(float, row.split())
    assert low < estimate < high
    assert left == "0.9"
    assert "NoBudget: trainee has no budget" in run().stderr


@pytest.mark.parametrize("language", ["r", "typescript"])
def test_a_program_has_about_twenty_lines(language: str) -> None:
    assert len(PROGRAMS[language].strip().splitlines()) <= 25
