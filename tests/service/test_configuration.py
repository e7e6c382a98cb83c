"""The configuration of a service: what is missing, unknown or unsafe is refused with what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.service import configured
from wpinq.errors import UsageError, WpinqError
from wpinq.service.config import read_configuration
from wpinq.service.server import server_context


def test_what_is_declared_is_read(tmp_path: Path) -> None:
    people = '[sources.people]\nfile = "people.csv"\nbudget = 2\nversion = "2024"\n'
    (tmp_path / "people.csv").write_text("name,town\na,b\n")
    found = read_configuration(configured(tmp_path, "release_workers = 3", "queue = 7", people))
    assert list(found.declared) == ["edges", "people"]
    assert found.sources["people"].budget == 2
    assert found.sources["people"].data == tmp_path / "people.csv"
    assert found.sources["edges"].query.plan.operator.facts == ("unit_weights",)  # which the edge list promises
    assert (found.release_workers, found.limits.queue, found.sandbox.safety_factor) == (3, 7, 16.0)
    assert found.ledger == tmp_path / "ledger.db"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[service]", "[serivce]", "serivce in the configuration"),
        ("declarations", "declaration", "declaration in the configuration"),
        ('ledger = "ledger.db"', "", "ledger in [service]: Field required"),
        ('users = "users.db"', "users = 3", "users in [service]: Input should be an instance of Path"),
        ("port = 0", "port = 99999", "port in [service]: Input should be less than 65536"),
        ("port = 0", 'port = "80"', "port in [service]: Input should be a valid integer"),
        ("port = 0", "release_workers = 0", "release_workers in [service]: Input should be greater than or equal to 1"),
        ("port = 0", "release_workers = true", "release_workers in [service]: Input should be a valid integer"),
        ("port = 0", 'host = "0.0.0.0"', "unencrypted"),
        ("port = 0", 'certificate = "cert.pem"', "TLS takes both"),
        ("port = 0", 'certificate = "a.pem"\nkey = "b.pem"', "there is no file"),
        ("at_once = 64", "at_onec = 64", "at_onec in [limits]: Extra inputs are not permitted"),
        ('users = "users.db"', 'users = "./ledger.db"', "are two files"),
        ("at_once = 64", "at_once = 0", "greater than or equal to 1"),
        ("at_once = 64", "release_seconds = inf", "a finite number"),
        ("at_once = 64", "slow_seconds = nan", "a finite number"),
        ("safety_factor = 16.0", "safety_factor = 0.5", "[sandbox]: Limits: safety_factor"),
        ("safety_factor = 16.0", 'memory = "much"', "[sandbox]: Limits: memory"),
        ("budget = '10'", "", "budget in [sources.edges]: Field required"),
        ("budget = '10'", "budget = -1", "epsilon"),
        ('file = "edges.txt"', 'file = "nothing.txt"', "there is no file"),
        ('edge_list = "undirected"', "", 'edge_list = "directed" in [sources.edges]'),
        ('edge_list = "undirected"', 'edge_list = "sideways"', "edge_list of [sources.edges] has no option"),
        ("[sources.edges]", "[sources.nodes]", "each declared source"),
        ("source edges(src: int, dst: int)", "source edges(src: int, dst: wrong)", "there is no type `wrong`"),
        ("records_at_most = 100;", "records_at_most = 100; var x = edges.Select(e => 1);", "source statements only"),
        ("[limits]", "[[limits]]", "limits in the configuration: Input should be a valid dictionary"),
        ("[limits]", "[limits", "is not valid TOML"),
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


def test_people_have_a_file_for_each_table(tmp_path: Path) -> None:
    declared = 'source patients(home: (region: str)?, visits: list[(ward: str), 3]) with person = "who", ids = int, '
    for name, columns in (("home", "who,region"), ("visits", "who,ward")):
        (tmp_path / f"{name}.csv").write_text(f"{columns}\n1,a\n")
    both = 'file = {home = "home.csv", visits = "visits.csv"}'

    def read(section: str) -> Any:
        path = configured(tmp_path)
        text = path.read_text().replace("source edges", f"{declared}records_at_most = 100;\nsource edges", 1)
        path.write_text(f"{text}\n[sources.patients]\nbudget = 2\n{section}\n")
        return read_configuration(path).sources["patients"]

    assert read(both).data == {name: tmp_path / f"{name}.csv" for name in ("home", "visits")}
    for section, words in (
        ('file = "home.csv"', "each table its own"),
        ('file = {home = "home.csv"}', "each table its own"),
        (both.replace("visits.csv", "nothing.csv"), "there is no file"),
        (f'{both}\nedge_list = "directed"', "none is an edge list"),
        (f'{both}\ncolumns = "a,b"', "none is an edge list"),
    ):
        with pytest.raises(WpinqError, match=words):
            read(section)
