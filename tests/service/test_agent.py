"""`wpinq mcp`, driven by the client of the protocol's SDK over stdio, against a service."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="agents need the extra mcp")

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from tests.service.conftest import Peopled
from tests.support.service import COUNT, ROOT
from wpinq.cli.main import main

READS = {"list_sources", "guide", "explain", "history"}


class Agent:
    """A host of the server, which notes all that comes out of it."""

    def __init__(self, address: str, token: str, folder: Path, *arguments: str) -> None:
        environment = {"PYTHONPATH": str(ROOT)} | ({} if arguments else {"WPINQ_TOKEN": token})
        command = ["-m", "wpinq", "mcp", address, *arguments]
        self._started = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=ROOT)
        self._log = folder / "stderr.txt"
        self.shown = ""

    def call(self, *calls: tuple[str, dict[str, Any]], between: Callable[[], object] = int) -> list[CallToolResult]:
        """The results of calls in one session; `between` runs after the first."""

        async def session() -> list[CallToolResult]:
            found = []
            with self._log.open("a") as log:
                async with Client(stdio_client(self._started, errlog=log)) as client:
                    self.tools = {each.name: each for each in (await client.list_tools()).tools}
                    self.shown += f"{client.instructions} {client.server_info} {self.tools}"
                    for name, arguments in calls:
                        found.append(await client.call_tool(name, arguments))
                        if len(found) == 1:
                            between()
            return found

        results = anyio.run(session)
        self.shown += "".join(each.model_dump_json() for each in results) + self._log.read_text()
        return results


def words(result: CallToolResult) -> str:
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def told(result: CallToolResult) -> Any:
    assert not result.is_error, result.content
    return result.structured_content


def test_an_agent_reads_prices_and_releases_with_its_own_budget(peopled: Peopled, tmp_path: Path) -> None:
    token, other = (peopled.service.admit(name, "edges=1") for name in ("robot", "second_robot"))
    program = {"program": "parameter e = 1;\n" + COUNT.format(name="x", epsilon="e"), "parameters": {"e": "0.23"}}
    agent = Agent(peopled.service.address, token, tmp_path)
    select = {"sql": "SELECT COUNT(*) AS n FROM edges", "epsilon": "0.24"}
    sources, guide, explained, released, again, history, later, priced = agent.call(
        ("list_sources", {}),
        ("guide", {}),
        ("explain", program),
        ("release", {**program, "label": "by an agent"}),
        ("release", program),
        ("history", {}),
        ("history", {"after": 1}),
        ("explain", select),
    )
    assert told(priced)["quote"] == {"edges": "0.24"}
    assert set(agent.tools) == {*READS, "release"}
    assert {name for name, tool in agent.tools.items() if tool.annotations.read_only_hint} == READS
    assert agent.tools["release"].annotations.destructive_hint
    assert [each["name"] for each in told(sources)["sources"]] == ["edges"]
    assert [each["remaining"] for each in told(sources)["budgets"]] == ["1"]
    assert "Where(predicate)" in {each["form"] for each in told(guide)["result"]}
    assert told(explained)["quote"] == {"edges": "0.23"}
    assert told(released)["remaining"] == {"edges": "0.77"}
    ((series),) = told(released)["answers"]["x"]["series"]
    assert [row["key"] for row in series["rows"]] == [["1"], ["2"], ["3"]]
    assert all(row["low"] < row["estimate"] < row["high"] for row in series["rows"])
    assert told(again) == told(released)  # stored, and free
    (debit,) = told(history)["result"]
    assert (debit["amount"], debit["label"]) == ("0.23", "by an agent")
    assert told(later)["result"] == []
    (second,) = Agent(peopled.service.address, other, tmp_path).call(("list_sources", {}))
    assert [each["remaining"] for each in told(second)["budgets"]] == ["1"]
    assert token not in agent.shown


def test_errors_of_the_service_reach_the_agent_in_its_words(peopled: Peopled, tmp_path: Path) -> None:
    token = peopled.service.admit("clumsy_robot", "edges=1")
    path = tmp_path / "agent.token"
    path.write_text(f"{token}\n", encoding="utf-8")
    path.chmod(0o600)
    agent = Agent(peopled.service.address, token, tmp_path, "--token-file", str(path))
    programs = [COUNT.format(name="x", epsilon=9), "var x = edges.Selec(e => e.src);", "var x = edges.NoisyCount(0.1);"]
    for program, result in zip(
        programs, agent.call(*(("release", {"program": each}) for each in programs)), strict=True
    ):
        error = peopled.service.release(token, program).json()["error"]
        assert words(result) == f"Error executing tool release: {error['message']}"
    wrong, none = agent.call(("release", {"program": 7}), ("spend", {}))
    assert "program" in words(wrong)
    assert "spend" in words(none)
    _, revoked = agent.call(
        ("list_sources", {}),
        ("history", {}),
        between=lambda: peopled.service.wpinq("remove", "clumsy_robot").check_returncode(),
    )
    assert "a token is required" in words(revoked)
    assert token not in agent.shown


def test_a_server_starts_with_the_private_token_of_an_analyst_alone(
    peopled: Peopled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address, path = peopled.service.address, tmp_path / "agent.token"
    path.write_text(peopled.alice, encoding="utf-8")
    path.chmod(0o644)

    def refused(mend: str, *arguments: str, token: str = "") -> None:
        monkeypatch.setenv("WPINQ_TOKEN", token)
        with contextlib.suppress(SystemExit):  # of argparse
            assert main(["mcp", *arguments]) != 0
        out, shown = capsys.readouterr()
        assert out == ""
        assert mend in shown
        assert len(shown.splitlines()) == 1
        assert not any(secret in shown for secret in (peopled.alice, peopled.curator, "a:b"))

    refused("WPINQ_TOKEN", address)
    refused("add an analyst", address, token=peopled.curator)
    refused("chmod 600", address, "--token-file", str(path))
    refused("a token is required", address, token="wpinq_nobody")
    refused("unrecognized", address, peopled.alice)
    refused("https://", "http://example.org", token=peopled.alice)
    refused("check that it is the address", "http://localhost:1", token=peopled.alice)
    refused("check that it is the address", "https://a:b@localhost:1", token=peopled.alice)
    refused("check that it is the address", address, token=f"{peopled.alice}\n{peopled.alice}")
