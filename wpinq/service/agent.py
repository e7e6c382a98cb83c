"""The tools of an agent over a connection to a service, by the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

import wpinq
from wpinq.errors import WpinqError
from wpinq.service.client import ServiceConnection

_INSTRUCTIONS = (
    "Differentially private answers about protected data, under an epsilon budget of your own. Read list_sources and "
    "guide, price a program, or a SELECT, by explain, then release it. A release spends the budget for good; the same "
    "program again gets the same answer. The ledger records programs and labels: put no secrets there."
)
_READS = ToolAnnotations(read_only_hint=True)

Program = Annotated[str | None, Field(description="a text program; the declared sources are known in it")]
Sql = Annotated[str | None, Field(description="a SELECT in place of a program")]
Cost = Annotated[str | None, Field(description='the cost of sql, as "0.1", unless OPTIONS(epsilon = 0.1) states it')]
Parameters = Annotated[dict[str, str | int | bool], Field(description="values of its parameters; numbers may be text")]
Label = Annotated[str | None, Field(description="stored as plain text in the ledger")]
Fresh = Annotated[bool, Field(description="draw new noise, at full cost, where the same was released before")]


class AgentTools:
    """The tools; errors of the service reach the agent in the service's words.

    Parameters
    ----------
    connection : ServiceConnection
        Of an analyst. No tool shows its token.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        self._connection = connection

    def server(self) -> MCPServer[Any]:
        """The server of the protocol."""
        made = MCPServer("wpinq", version=wpinq.__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
        for tool in (self.list_sources, self.guide, self.explain, self.history):
            made.add_tool(tool, annotations=_READS)
        made.add_tool(self.release, annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
        return made

    def list_sources(self) -> dict[str, Any]:
        """The sources with declarations and example programs, and your remaining budgets."""
        return {"sources": self._request("GET", "sources"), "budgets": self._request("GET", "remaining")}

    def guide(self) -> list[dict[str, Any]]:
        """The operators, releases, aggregates and functions of programs."""
        return list(self._request("GET", "guide"))

    def explain(
        self, program: Program = None, parameters: Parameters | None = None, sql: Sql = None, epsilon: Cost = None
    ) -> dict[str, Any]:
        """The cost, plans and expected accuracy of a program or a SELECT; nothing is spent."""
        asked = {"program": program, "parameters": parameters or {}, "sql": sql, "epsilon": epsilon}
        return dict(self._request("POST", "explain", asked))

    def release(
        self,
        program: Program = None,
        parameters: Parameters | None = None,
        label: Label = None,
        fresh: Fresh = False,
        sql: Sql = None,
        epsilon: Cost = None,
    ) -> dict[str, Any]:
        """Spend the budget that explain quotes, and answer with intervals."""
        asked: dict[str, Any] = {"program": program, "parameters": parameters or {}, "sql": sql, "epsilon": epsilon}
        asked |= {"label": label, "fresh": fresh}
        told = self._request("POST", "release", asked)
        # without the data from which the library reads an answer back: they are long
        answers = {name: {"form": one["form"], "series": one["series"]} for name, one in told["answers"].items()}
        return {"answers": answers, "remaining": told["remaining"]}

    def history(self, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """The debits from your budgets: at most `limit`, numbered from `after` + 1."""
        return list(self._request("GET", f"history?after={after}&limit={limit}"))

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            return self._connection.request(method, path, body)
        except WpinqError as error:
            raise ToolError(str(error)) from None
