"""A ledger in PostgreSQL: rights, tampering, passwords, lost connections, killed servers and restored backups."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from fractions import Fraction

import pytest

from tests.support.postgres import PASSWORD, Server, running
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, postgres
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, PartsOf, Price, Pricing
from wpinq.kernel.ledger.postgres import LedgerURL

psycopg = pytest.importorskip("psycopg", reason="a ledger in PostgreSQL needs the extra postgres")

EDGES = declared_account("edges", schema="s", unit="u", unit_weight=Fraction(1), budget=10**6)
TABLES = ["accounts", "entries", "measurements", "plans", "parts", "answers", "leases"]


def flat(amount: int) -> Price:
    return lambda new, parts_of: Pricing({"edges": amount}, {("p", "x"): parts_of("p").get("x", Fraction(0)) + 1})


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


@pytest.fixture
def books(postgres_ledger: str) -> str:
    """A ledger with a row or more in every table."""
    with Ledger(postgres_ledger) as ledger:
        ledger.open_accounts([EDGES, declared_account("nodes", "s", "u", Fraction(1), 10)])
        ledger.debit({"m": "degrees"}, flat(5), plan="plan of {}".format)
        ledger.store_answers("m", {b"a": 1.0, b"b": -0.0})
        ledger.set_budget("edges", 2 * 10**6)
        ledger.debit({"n": "pairs"}, flat(7), plan="plan of {}".format)
        ledger.suspend(["nodes"])
        ledger.verify()
    return postgres_ledger


# rights


@pytest.mark.parametrize("table", TABLES)
def test_a_service_reads_and_cannot_write_past_the_functions(books: str, table: str) -> None:
    with psycopg.connect(books, autocommit=True) as connection:
        rows = connection.execute(f"SELECT * FROM wpinq.{table}").fetchall()
        column = connection.execute(f"SELECT * FROM wpinq.{table}").description[0].name
        for statement in (
            f"DELETE FROM wpinq.{table}",
            f"UPDATE wpinq.{table} SET {column} = {column}",
            f"INSERT INTO wpinq.{table} SELECT * FROM wpinq.{table}",
            f"TRUNCATE wpinq.{table}",
            f"DROP TABLE wpinq.{table}",
            f"SELECT * FROM wpinq.{table} FOR UPDATE",
            "CREATE TABLE wpinq.other (a int)",
            "DROP FUNCTION wpinq.append",
            f"SET ROLE {name_of(books)}_owner",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        assert connection.execute(f"SELECT * FROM wpinq.{table}").fetchall() == rows


def test_the_functions_append_nothing_that_does_not_follow(books: str) -> None:
    with psycopg.connect(books, autocommit=True) as connection:
        connection.execute("SET search_path = wpinq")
        last = chain.head(connection)

        def append(
            kind: str, target: str, amount: int, content: str, skip: int = 1, previous: bytes = last.hash
        ) -> None:
            row = (last.sequence + skip, "", kind, "", target, amount, content)
            values = (*row, chain.link(previous, row))
            connection.execute("SELECT wpinq.append(%s, %s, %s, %s, %s, %s, %s, %s)", values)

        for wrong in (
            ("debit", "edges", 10**7, '{"measurements":{},"parts":[]}'),
            ("debit", "edges", -1, '{"measurements":{},"parts":[]}'),
            ("debit", "edges", 1, '{"measurements":{"m":"again"},"parts":[]}'),
            ("debit", "nobody", 1, '{"measurements":{},"parts":[]}'),
            ("debit", "edges", 1, "no JSON"),
            ("set budget", "edges", 5, '{"previous":1}'),
            ("set budget", "edges", 11, '{"previous":2000000}'),
            ("open account", "edges", 5, '{"schema":"s","unit":"u","unit_weight":"1"}'),
            ("answers", "never paid for", 0, "{}"),
            ("suspend", "nobody", 0, "{}"),
            ("another", "edges", 0, "{}"),
            ("suspend", "edges", 0, "{}", 2),
            ("suspend", "edges", 0, "{}", 0),
            ("suspend", "edges", 0, "{}", 1, bytes(32)),
        ):
            with pytest.raises(psycopg.Error):
                append(*wrong)
        for statement in (
            "SELECT wpinq.add_plan('digest of another', 2, 'plan')",
            "SELECT wpinq.add_answers('m', 3, 'other answers')",
            "SELECT wpinq.add_answers('m', 4, '')",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement)
        assert chain.head(connection) == last
        append("suspend", "edges", 0, "{}")
    with Ledger(books) as ledger:
        ledger.verify()
        assert ledger.suspended() == {"edges", "nodes"}


def test_a_user_without_the_role_is_told(postgres_server: Server, books: str) -> None:
    name = name_of(books)
    postgres_server.execute(f"REVOKE {name}_service FROM {name}")
    try:
        with pytest.raises(LedgerError, match=r"may not read the ledger: grant it the role db\w+_service"):
            Ledger(books)
    finally:
        postgres_server.execute(f"GRANT {name}_service TO {name}")


# what an owner of the database may have done


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE wpinq.accounts SET spent = 0 WHERE name = 'edges'",
        "UPDATE wpinq.accounts SET suspended = 0",
        "UPDATE wpinq.entries SET amount = 1 WHERE sequence = 3",
        "UPDATE wpinq.entries SET actor = 'another' WHERE sequence = 1",
        "UPDATE wpinq.parts SET demand = '0'",
        "UPDATE wpinq.plans SET plan = 'another'",
        "UPDATE wpinq.answers SET answers = ''",
        "DELETE FROM wpinq.measurements",
        "DELETE FROM wpinq.entries WHERE sequence = 2",
        "DELETE FROM wpinq.answers",
        "INSERT INTO wpinq.accounts VALUES ('free', 's', 'u', '1', 10, 0, 0)",
    ],
)
def test_an_edit_is_found_when_the_ledger_is_opened(postgres_server: Server, books: str, edit: str) -> None:
    postgres_server.execute(edit, name_of(books))
    with pytest.raises(LedgerError, match=r"^postgresql://127.0.0.1:\d+/\w+ has been tampered with"):
        Ledger(books)


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("GRANT INSERT ON wpinq.entries TO PUBLIC", "REVOKE INSERT ON wpinq.entries FROM PUBLIC"),
        ("GRANT UPDATE ON wpinq.accounts TO {}_service", "REVOKE UPDATE ON wpinq.accounts FROM {}_service"),
        (
            "CREATE FUNCTION wpinq.other() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "DROP FUNCTION wpinq.other",
        ),
    ],
)
def test_other_rights_and_functions_are_found(postgres_server: Server, books: str, change: str, back: str) -> None:
    name = name_of(books)
    with Ledger(books) as ledger:
        ledger.verify()
        postgres_server.execute(change.format(name), name)
        try:
            with pytest.raises(LedgerError, match="its functions or rights are not those of a ledger"):
                ledger.verify()
        finally:
            postgres_server.execute(back.format(name), name)
        ledger.verify()


# places


def test_a_database_without_a_ledger_is_refused_and_none_is_made(postgres_server: Server) -> None:
    name = postgres_server.database()
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"has no ledger: wpinq ledger init makes a new one"):
            Ledger(postgres_server.url(name))
    postgres.create(postgres_server.url(name))
    with pytest.raises(LedgerError, match="has a ledger, or another schema wpinq"):
        postgres.create(postgres_server.url(name))
    postgres_server.execute("COMMENT ON SCHEMA wpinq IS 'wpinq ledger of format 5'", name)
    with pytest.raises(LedgerError, match="has a wpinq ledger of format 5, and this wpinq reads format"):
        Ledger(postgres_server.url(name))


SECRETS = ["secret", "sec%2Fret", "se:cret", "s%40cret"]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_password_is_in_no_text_of_a_url(secret: str) -> None:
    for url in (f"postgresql://alice:{secret}@host:1/db", f"postgres://alice:{secret}@h/db?password={secret}"):
        place = LedgerURL(url)
        assert os.fspath(place) == url
        assert not {secret, "alice"} & {*str(place).replace("/", ":").split(":"), *repr(place).split(":")}
        assert secret not in f"{place} {place!r} {place!s}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://alice:sec/ret@host/db",
        "postgresql://alice:sec?ret@host/db",
        "postgresql://alice:sec#ret@host/db",
        "postgresql://alice:12/ret?x@host/db",
        "postgresql://secret",
        "postgresql://host/db/secret",
        "postgresql:secret",
    ],
)
def test_a_url_that_is_none_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(LedgerError, match="the URL of a ledger is postgresql://") as refused:
        Ledger(url)
    assert "sec" not in str(refused.value)
    assert "ret" not in str(refused.value)


@pytest.mark.parametrize("wrong", [":1/", "USER/", "DATABASE", "?sslmode=secret", "?secret=1"])
def test_no_error_of_a_connection_tells_the_password(postgres_server: Server, books: str, wrong: str) -> None:
    url = books.replace("%20", "") if wrong == "USER/" else books
    if wrong.startswith(":"):
        url = url.replace(f":{postgres_server.port}/", wrong)
    elif wrong == "DATABASE":
        url += "nowhere"
    elif wrong.startswith("?"):
        url += wrong
    with pytest.raises(LedgerError, match=r"^postgresql://127.0.0.1:\d+/\w+ cannot be opened") as refused:
        Ledger(url)
    said = "".join(traceback.format_exception(refused.value))
    assert not any(word in said for word in (PASSWORD, "a%20secret", "asecret-word"))
    assert refused.value.__cause__ is None


def test_no_error_of_a_statement_tells_the_password(books: str) -> None:
    with Ledger(books) as ledger:

        def failing(transaction: chain.Transaction) -> None:
            transaction.execute("SELECT nothing FROM nowhere")

        with pytest.raises(LedgerError, match='the database refused: relation "nowhere" does not exist') as refused:
            ledger._store.write(failing)
        assert "secret" not in "".join(traceback.format_exception(refused.value))
        assert "secret" not in repr(ledger) + repr(ledger._store)


# connections


def end_connections(server: Server, ledger: str) -> None:
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name_of(ledger)}'")


def test_an_idle_connection_that_was_lost_is_opened_again(postgres_server: Server, books: str) -> None:
    with Ledger(books) as ledger:
        for act in (
            ledger.accounts,
            ledger.verify,
            lambda: ledger.debit({"o": "other"}, flat(1)),
            lambda: ledger.store_answers("o", {b"a": 2.0}),
        ):
            end_connections(postgres_server, books)
            act()
        assert ledger.answers("o") == {b"a": 2.0}


def test_a_connection_that_is_lost_amid_a_debit_undoes_it(postgres_server: Server, books: str) -> None:
    with Ledger(books) as ledger:
        head = ledger.head()

        def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
            end_connections(postgres_server, books)
            return Pricing({"edges": 1}, {})

        for _ in range(2):
            with pytest.raises(LedgerError, match="the connection was lost: see with wpinq ledger show what stands"):
                ledger.debit({"o": "other"}, price)
        assert ledger.head() == head
        assert ledger.debit({"o": "other"}, flat(1)) == {"o"}


def test_a_statement_that_failed_and_was_hidden_records_nothing(books: str) -> None:
    with Ledger(books) as ledger:

        def hiding(transaction: chain.Transaction) -> None:
            with pytest.raises(psycopg.Error):
                transaction.execute("SELECT nothing FROM nowhere")

        with pytest.raises(LedgerError, match="nothing was recorded, for a statement failed"):
            ledger._store.write(hiding)


def test_an_answer_is_durable_where_the_server_is_told_otherwise(postgres_server: Server, books: str) -> None:
    name = name_of(books)
    postgres_server.execute(f"ALTER ROLE {name} SET synchronous_commit = off")
    with Ledger(books) as ledger:
        found = ledger._store.read(lambda transaction: transaction.execute("SHOW synchronous_commit").fetchone())
    assert found == ("on",)


# killed servers and old backups


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server to be killed."""
    with running() as server:
        yield server


def test_a_debit_stands_whose_answer_the_server_did_not_live_to_store(own_server: Server) -> None:
    url = own_server.ledger()
    with Ledger(url) as ledger:
        ledger.open_accounts([EDGES])
        ledger.debit({"m": "degrees"}, flat(5))
        own_server.stop()
        with pytest.raises(LedgerError, match="cannot be opened"):
            ledger.store_answers("m", {b"a": 1.0})
        own_server.start()
        ledger.verify()
        assert ledger.account("edges").spent == 5
        assert ledger.answers("m") == {}


def test_a_restored_backup_is_noticed(own_server: Server) -> None:
    """By those who know a later head: who was connected, and who was told it."""
    url = own_server.ledger()
    with Ledger(url) as ledger:
        ledger.open_accounts([EDGES])
        ledger.debit({"m": "degrees"}, flat(5))
        own_server.stop()
        kept = own_server.data.with_name("kept")
        subprocess.run(["cp", "-a", str(own_server.data), str(kept)], check=True)
        own_server.start()
        ledger.debit({"n": "degrees"}, flat(5))
        head = ledger.head()
        own_server.stop()
        own_server.data.rename(own_server.data.with_name("lost"))
        kept.rename(own_server.data)
        own_server.start()
        with pytest.raises(LedgerError, match="does not hold entry 3, which it had before in this process"):
            ledger.debit({"o": "degrees"}, flat(5))
    with pytest.raises(LedgerError, match="does not hold entry 3, the head that is expected"):
        Ledger(url, expected_head=head)
    with Ledger(url) as ledger:
        assert ledger.account("edges").spent == 5


ENDLESS = """
import os, sys
from wpinq.errors import LedgerError
from wpinq.kernel.ledger.ledger import Ledger, Pricing
with Ledger(sys.argv[1]) as ledger:
    for i in range(10**9):
        digest = f"{sys.argv[2]}.{i}"
        try:
            ledger.debit({digest: "count"}, lambda new, parts_of: Pricing({"edges": 3}, {}))
            os.write(1, (digest + "\\n").encode())
            ledger.store_answers(digest, {b"%d" % k: float(k) for k in range(i % 40)})
            os.write(1, (digest + " answers\\n").encode())
        except LedgerError:
            os.write(1, b"refused\\n")
"""


@pytest.mark.long
def test_kills_of_clients_and_servers_leave_a_ledger_that_verifies(own_server: Server) -> None:
    url, chance = own_server.ledger(), random.Random(11)
    with Ledger(url) as ledger:
        ledger.open_accounts([declared_account("edges", "s", "u", Fraction(1), 10**9)])
    debited, answered, refused = set[str](), set[str](), 0
    kills = int(os.environ.get("WPINQ_KILLS", "50"))
    for kill in range(kills):
        command = [sys.executable, "-c", ENDLESS, url, str(kill)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=pathlib.Path(__file__).parents[2])
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.1))
        if kill % 2:
            own_server.kill()
            time.sleep(chance.uniform(0.0, 0.1))
        process.kill()
        with process:
            output = first + process.stdout.read()
        for line in output.splitlines():
            digest, *answers = line.split()
            if digest == "refused":
                refused += 1
            else:
                (answered if answers else debited).add(digest)
        with Ledger(url) as ledger:
            ledger.verify()
            paid = {digest for entry in ledger.entries() if entry.kind == "debit" for digest in entry.measurements}
            assert ledger.account("edges").spent == 3 * len(paid)
            assert debited <= paid
            assert len(paid) <= len(debited) + kill + 1  # a kill may come between the commit and the word of it
            for digest in answered:
                asked = range(int(digest.split(".")[1]) % 40)
                assert ledger.answers(digest) == {b"%d" % k: float(k) for k in asked}
    assert answered
    assert refused


SPEND = """
import sys
from wpinq.errors import BudgetExceeded
from wpinq.kernel.ledger.ledger import Ledger, Pricing
accepted = 0
with Ledger(sys.argv[1]) as ledger:
    for i in range(int(sys.argv[3])):
        try:
            ledger.debit({f"{sys.argv[2]}.{i}": "count"}, lambda new, parts_of: Pricing({"edges": 3}, {}))
            accepted += 1
        except BudgetExceeded:
            pass
print(accepted)
"""


@pytest.mark.long
def test_sixteen_processes_spend_what_there_is_and_no_more(postgres_ledger: str) -> None:
    debits = int(os.environ.get("WPINQ_DEBITS", "100000")) // 16
    budget = 3 * debits * 15 + 2
    with Ledger(postgres_ledger) as ledger:
        ledger.open_accounts([declared_account("edges", "s", "u", Fraction(1), budget)])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SPEND, postgres_ledger, str(number), str(debits)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=pathlib.Path(__file__).parents[2],
        )
        for number in range(16)
    ]
    accepted = sum(int(process.communicate()[0]) for process in started)
    with Ledger(postgres_ledger) as ledger:
        ledger.verify()
        assert 3 * accepted == ledger.account("edges").spent == budget - 2
