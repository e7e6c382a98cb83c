"""The configuration of a service: what is missing, unknown or unsafe is refused with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.service import configured
from wpinq.errors import UsageError, WpinqError
from wpinq.service.config import read_configuration
from wpinq.service.server import server_context


def test_what_is_declared_is_read(tmp_path: Path) -> None:
    people = '[sources.people]\nfile = "people.csv"\nbudget = 2\nversion = "2024"\n'
    (tmp_path / "people.csv").write_text("name,town\na,b\n")
    found = read_configuration(configured(tmp_path, "slots = 3", "queue = 7", people))
    assert list(found.declared) == ["edges", "people"]
    assert found.sources["people"].budget == 2
    assert found.sources["people"].data == tmp_path / "people.csv"
    assert found.sources["edges"].query.plan.operator.facts == ("unit_weights",)  # which the edge list promises
    assert (found.slots, found.limits.queue, found.untrusted.margin) == (3, 7, 16.0)
    assert found.ledger == tmp_path / "ledger.db"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[service]", "[serivce]", "has no 'serivce'"),
        ("declarations", "declaration", "has no 'declaration'"),
        ('ledger = "ledger.db"', "", 'ledger = "FILE" is missing'),
        ('register = "register.db"', "register = 3", "register in [service] is of type str"),
        ("port = 0", "port = 99999", "a port from 0"),
        ("port = 0", 'port = "80"', "port in [service] is of type int"),
        ("port = 0", "slots = 0", "at least one of slots"),
        ("port = 0", "slots = true", "slots in [service] is of type int"),
        ("port = 0", 'host = "0.0.0.0"', "in clear"),
        ("port = 0", 'certificate = "cert.pem"', "TLS takes both"),
        ("port = 0", 'certificate = "a.pem"\nkey = "b.pem"', "there is no file"),
        ("at_once = 64", "at_onec = 64", "[limits] has no 'at_onec'"),
        ('register = "register.db"', 'register = "./ledger.db"', "are two files"),
        ("at_once = 64", "at_once = 0", "more than 0"),
        ("at_once = 64", "release_seconds = inf", "more than 0, and finite"),
        ("at_once = 64", "slow_seconds = nan", "more than 0, and finite"),
        ("margin = 16.0", "margin = 0.5", "[untrusted]: Limits: margin"),
        ("margin = 16.0", 'memory = "much"', "[untrusted]: Limits: memory"),
        ("budget = '10'", "", "budget is missing in [sources.edges]"),
        ("budget = '10'", "budget = -1", "epsilon"),
        ('file = "edges.txt"', 'file = "nothing.txt"', "there is no file"),
        ('edge_list = "undirected"', "", 'edge_list = "directed" in [sources.edges]'),
        ('edge_list = "undirected"', 'edge_list = "sideways"', "edge_list of [sources.edges] has no option"),
        ("[sources.edges]", "[sources.nodes]", "each source of the declarations"),
        ("source edges(src: int, dst: int)", "source edges(src: int, dst: wrong)", "there is no type `wrong`"),
        ("records_at_most = 100;", "records_at_most = 100; var x = edges.Select(e => 1);", "source statements alone"),
        ("[limits]", "[[limits]]", "is a table"),
        ("[limits]", "[limits", "is no TOML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = configured(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(WpinqError) as refused:
        read_configuration(path)
    assert words in str(refused.value)


def test_a_network_takes_tls_or_a_proxy_that_does_it(tmp_path: Path) -> None:
    read_configuration(configured(tmp_path, 'host = "::1"'))
    read_configuration(configured(tmp_path, 'host = "0.0.0.0"\nbehind_proxy = true'))
    for name in ("a.pem", "b.pem"):
        (tmp_path / name).write_text("nothing")
        (tmp_path / name).chmod(0o600)
    held = read_configuration(configured(tmp_path, 'host = "0.0.0.0"\ncertificate = "a.pem"\nkey = "b.pem"'))
    with pytest.raises(UsageError, match="no certificate and its key"):
        server_context(held)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_configuration(tmp_path / "nothing.toml")
