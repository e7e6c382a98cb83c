"""The layers that docs/architecture.md shows are those that import-linter enforces."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_layers_are_those_of_the_import_contract() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = [
        {f"wpinq.{module}" for module in re.findall(r"`(\w+)`", modules)}
        for modules in re.findall(r"^\| \d+ \| (.*) \|$", page, flags=re.M)
    ]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (
        contract["layers"] for contract in contracts["contracts"] if contract["name"] == "Imports point one way"
    )
    assert shown == [{module.strip() for module in layer.split("|")} for layer in layers]
