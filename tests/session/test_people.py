"""The person as the unit, from the declaration to the ledger: what is billed, debited, kept and said."""

from __future__ import annotations

import gc
import json
import pathlib
import shutil
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import igraph
import networkx
import numpy as np
import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.data.files import identities
from wpinq.expr.declarations import Person
from wpinq.expr.types import INT, record_type
from wpinq.kernel.ledger.accounts import declaration
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.node import Node
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties

HEAVY = 10**6
"""An epsilon at which noise is of the order of 1e-6, so that a release shows what was kept."""

PURCHASES = wp.source("purchases", shop=str, price=int, person="customer", at_most=2)
ROWS = [{"customer": who, "shop": shop, "price": 1} for who, shop in [(1, "a"), (1, "a"), (1, "a"), (2, "b"), (3, "a")]]
BOUGHT = wp.source("bought", shop=str, person="customer", at_most=20, account="customers")
VISITED = wp.source("visited", page=str, person="user", at_most=5, account="customers", unit="one person")
VISITS = [{"user": 1, "page": "x"}, {"user": 1, "page": "y"}]


def test_the_bill_says_twenty_before_data_are_seen() -> None:
    shops = wp.source("purchases", shop=str, person="customer_id", at_most=20).select(lambda p: p.shop)
    assert str(shops.bill(epsilon="0.1")) == (
        "purchases: 2\n"
        "  protects one person, at most 20 rows, of weight 20\n"
        "  NoisyCount(0.1), spent once: 0.1 x 1 x 20 = 2"
    )
    text = shops.explain(epsilon="0.1")
    assert "a release costs epsilon x 1 x 20 (its unit weight) = 2." in text
    assert "Protects one person, at most 20 rows of purchases." in text


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_rows_and_lists_are_released_as_they_were_cut(engine: str) -> None:
    lists = wp.source("lists", shop=str, person="customer", at_most=2, nested=True, account="all")
    flat = wp.source("flat", shop=str, person="customer", at_most=2, account="all")
    with wp.Session(engine=engine) as session:
        for source in (lists, flat):
            session.protect(source, ROWS, budget=100 * HEAVY)
        many = lists.select(lambda rows: F.count(rows)).noisy_count(HEAVY, over=[1, 2, 3])
        most = lists.select(lambda rows: F.element(rows, 0).shop).noisy_count(HEAVY, over=["a", "b"])
        shops = flat.select(lambda p: p.shop).noisy_count(HEAVY, over=["a", "b"])
        answers = session.release([many, most, shops])
        assert [np.round(table.values, 2).tolist() for table in answers] == [[2.0, 1.0, 0.0], [2.0, 1.0], [3.0, 1.0]]
        assert session.spent("all") == session.spent("flat") == (1 + 1 + 2) * HEAVY


def test_rows_of_people_are_counted_so_their_weights_are_whole_and_none_is_negative() -> None:
    certificate = plan_properties(PURCHASES.select(lambda p: p.shop).plan)
    assert certificate.lattice == 1
    assert certificate.output.nonnegative
    assert not PURCHASES.plan.operator.facts
    with wp.Session() as session:
        session.protect(PURCHASES, ROWS, budget=10**5)
        shops = PURCHASES.select(lambda p: p.shop).geometric_count(1000, over=["a", "b"])
        assert session.release(shops).values.tolist() == [3.0, 1.0]
        assert session.spent("purchases") == 2000


def test_what_one_person_becomes_is_bounded_by_all_of_the_persons_rows() -> None:
    def pairs(at_most: int) -> wp.Query:
        source = wp.source("s", n=list[int], person="who", at_most=at_most)
        return source.select_many(
            lambda r: F.flatten(F.map(F.first(r.n, 100), lambda a: F.map(F.first(r.n, 100), lambda b: (a, b))))
        )

    assert pairs(100).plan.unit_growth.records == 100 * 10_000
    with pytest.raises(wp.PlanError, match="may become"):
        pairs(1_000)


WIDE: dict[str, Any] = {f"f{i}": int for i in range(20)}


@pytest.mark.parametrize("nested", [False, True])
def test_a_person_of_too_many_values_is_refused_whether_released_directly_or_not(nested: bool) -> None:
    wp.source("wide", person="who", at_most=900_000, nested=nested, **WIDE).where(lambda r: True)
    with pytest.raises(wp.WpinqError, match="values"):
        wp.source("wide", person="who", at_most=1_000_000, nested=nested, **WIDE)


def test_a_plan_that_was_read_with_too_many_values_a_person_buys_nothing() -> None:
    within = wp.source("wide", person="who", at_most=900_000, **WIDE)
    declared = within.plan.operator
    assert isinstance(declared, Source)
    person, weight = Person("who", 1_000_000), Fraction(1_000_000)
    beyond = Node(replace(declared, person=person, unit_weight=weight))
    assert plan_from_json(plan_to_json(beyond)) == beyond  # answers that were saved with it can be read
    with wp.Session() as session:
        for buy in (
            lambda: session.bill(replace(within.noisy_count(1), plan=beyond)),
            lambda: session.protect(wp.Query(beyond), [], budget=10),
        ):
            with pytest.raises(wp.PlanError, match="declare at_most=952380 or less"):
                buy()


def test_a_plan_over_the_rows_without_the_person_is_refused(ledger: pathlib.Path) -> None:
    with wp.Session(ledger) as session:
        session.protect(PURCHASES, ROWS, budget=10)
        for other in (
            wp.source("purchases", shop=str, price=int),
            wp.source("purchases", shop=str, price=int, unit_weight=2, unit="one person"),
            wp.source("purchases", shop=str, price=int, person="customer", at_most=1),
            wp.source("purchases", shop=str, price=int, person="customer", at_most=2, account="customers"),
        ):
            with pytest.raises(wp.SessionError, match="another declaration"):
                session.release(other.noisy_count(1, over=[("a", 1)]))
        assert session.spent("purchases") == 0
    with wp.Session(ledger) as session:
        for other in (wp.source("purchases", shop=str, price=int, person="shop", at_most=2), PURCHASES):
            if other is PURCHASES:
                session.protect(other, ROWS, budget=10)
            else:
                with pytest.raises(wp.LedgerError, match="person 'customer', at most 2 rows"):
                    session.protect(other, ROWS, budget=10)


def test_a_forged_plan_cannot_price_a_person_below_what_a_person_weighs() -> None:
    for name, value in (
        ("unit_weight", {"fraction": "1"}),
        ("person", {"person": {"column": "customer", "at_most": 1}}),
    ):
        data = plan_to_json(PURCHASES.plan)
        data["nodes"][0]["arguments"][name] = value
        with pytest.raises(wp.PlanError, match="one person changes it by a weight"):
            plan_from_json(data)
    data = plan_to_json(BOUGHT.plan)
    data["nodes"][0]["arguments"]["person"]["person"]["nested"] = True
    data["nodes"][0]["arguments"]["unit_weight"] = {"fraction": "1"}
    with pytest.raises(wp.PlanError, match="lists of at most 20 rows"):
        plan_from_json(data)
    data["nodes"][0]["arguments"]["person"]["person"]["column"] = 3
    with pytest.raises(wp.PlanError, match="names the column"):
        plan_from_json(data)


def test_sources_without_a_person_are_what_they_were() -> None:
    edges = wp.source("edges", src=int, dst=int, unit="one directed edge", cap=1000, facts=["unit_weights"])
    assert edges.plan.digest.hex() == "1fcaf82032200b40e2ed5c401d3a93680e3d4f6bd0b44b3fb211d14aca1fd39e"
    assert list(plan_to_json(edges.plan)["nodes"][0]["arguments"]) == (
        ["source", "record", "schema", "unit", "unit_weight", "cap", "facts"]
    )
    assert declaration(edges.plan.operator) == "(src:int,dst:int); cap 1000; facts unit_weights"


# --- several tables of the same people -------------------------------------------------------------------------------


def opened(ledger: Any = None) -> wp.Session:
    session = wp.Session(ledger)
    session.protect(BOUGHT, ROWS, budget=100)
    session.protect(VISITED, VISITS, budget=100)
    return session


def test_tables_of_one_account_cost_their_sum_of_each_measurement() -> None:
    both = BOUGHT.select(lambda r: r.shop).join(VISITED.select(lambda r: r.page), lambda a: a, lambda b: b)
    batch = [both.noisy_count("0.1"), VISITED.noisy_count("0.2")]
    bill = wp.bill(batch)
    assert dict(bill) == {"customers": Fraction("0.1") * (20 + 5) + Fraction("0.2") * 5}
    assert str(bill) == (
        "customers: 3.5\n"
        "  bought protects one person, at most 20 rows, of weight 20\n"
        "  NoisyCount(0.1) of bought, spent once: 0.1 x 1 x 20 = 2\n"
        "  visited protects one person, at most 5 rows, of weight 5\n"
        "  NoisyCount(0.1) of visited, spent once: 0.1 x 1 x 5 = 0.5\n"
        "  NoisyCount(0.2) of visited, spent once: 0.2 x 1 x 5 = 1\n"
        "  one person may be in each of these tables: their costs add up"
    )
    with opened() as session:
        session.release(batch)
        for name in ("customers", "bought", "visited"):
            assert session.spent(name) == Fraction("3.5")
            assert session.remaining(name) == Fraction("96.5")
        session.set_budget("visited", 50)
        assert session.remaining("customers") == Fraction("46.5")


def test_parts_of_two_tables_are_never_one_partition() -> None:
    bought = list(BOUGHT.partition(lambda r: r.shop, ["a", "b"]).values())
    visited = list(VISITED.partition(lambda r: r.page, ["a", "b"]).values())
    batch = [part.noisy_count(1) for part in (*bought, *visited)]
    assert wp.bill(batch) == {"customers": 25}
    with opened() as session:
        session.release(bought[0].noisy_count(1))
        assert session.spent("customers") == 20
        session.release(visited[1].noisy_count(1))  # another table: not below the maximum of the first
        assert session.spent("customers") == 25
        session.release([bought[1].noisy_count(1), visited[0].noisy_count(1)])
        assert session.spent("customers") == 25
        joined = BOUGHT.select(lambda r: r.shop).concat(VISITED.select(lambda r: r.page))
        parts = joined.partition(lambda text: text, ["a", "x"]).values()
        session.release([part.noisy_count(1) for part in parts])
        assert session.spent("customers") == 50


def test_a_budget_that_covers_each_table_and_not_their_sum_is_too_small() -> None:
    with wp.Session() as session:
        session.protect(BOUGHT, ROWS, budget=20)
        session.protect(VISITED, VISITS, budget=20)
        with pytest.raises(wp.BudgetExceeded, match="'customers' needs 25 and has 20 left"):
            session.release([BOUGHT.noisy_count(1), VISITED.noisy_count(1)])
        assert session.spent("customers") == 0


def test_a_choice_over_two_tables_is_certified_for_both_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from wpinq.sinks import choose

    asked = []
    monkeypatch.setattr(choose, "laplace_scale", lambda epsilon, slack, sensitivity: asked.append(sensitivity) or 40.0)
    names = BOUGHT.select(lambda r: r.shop).concat(VISITED.select(lambda r: r.page))
    with opened() as session:
        session.release(names.most_common("0.1", ["a", "x"]))
        assert session.spent("customers") == Fraction("2.5")
    assert asked == [1]


def test_an_account_fixes_every_table_and_replays(ledger: pathlib.Path) -> None:
    with opened(ledger):
        pass
    with wp.Session(ledger) as session:
        more = wp.source("visited", page=str, person="user", at_most=6, account="customers")
        with pytest.raises(wp.LedgerError, match="at most 5 rows"):
            session.protect(more, VISITS, budget=100)
        with pytest.raises(wp.LedgerError, match="budget of 100"):
            session.protect(VISITED, VISITS, budget=99)
        with pytest.raises(wp.LedgerError, match="'customers'"):  # a source of the account's name is not the account
            session.protect(wp.source("customers", name=str), [("x",)], budget=100)
        for other in ({}, {"account": "users"}):
            source = wp.source("visited", page=str, person="user", at_most=5, **other)
            with pytest.raises(wp.LedgerError, match="as the account 'customers/visited'"):
                session.protect(source, VISITS, budget=100)
        session.protect(VISITED, VISITS, budget=100, version="1")
        first = session.release(VISITED.noisy_count(1, over=[("x",)]))
    with wp.Session(ledger) as session:
        session.protect(VISITED, VISITS, budget=100, version="1")
        assert session.release(VISITED.noisy_count(1, over=[("x",)])).value == first.value
        assert session.spent("customers") == 5
    with Ledger(ledger) as kept:
        kept.verify()
        accounts = {account.name: (account.budget, account.spent) for account in kept.accounts()}
        assert accounts == {
            "customers": (100 * 10**9, 5 * 10**9),
            "customers/bought": (0, 0),
            "customers/visited": (0, 0),
        }
        with pytest.raises(wp.LedgerError, match="pays nothing"):
            kept.set_budget("customers/bought", 10**9)


def test_an_account_of_its_own_does_not_become_shared(ledger: pathlib.Path) -> None:
    with wp.Session(ledger) as session:
        session.protect(wp.source("bought", shop=str), [("a",)], budget=1)
        with pytest.raises(wp.LedgerError, match="as the account 'bought'"):
            session.protect(BOUGHT, ROWS, budget=100)


def test_no_name_is_a_table_of_one_account_and_an_account_of_others(ledger: pathlib.Path) -> None:
    def table(name: str, account: str) -> wp.Query:
        return wp.source(name, shop=str, person="customer", at_most=1, account=account)

    with wp.Session(ledger) as session:
        session.protect(table("x", "c2"), ROWS, budget=7)
        for other in (table("c2", "d"), wp.source("c2", shop=str)):
            with pytest.raises(wp.LedgerError, match="'c2'"):
                session.protect(other, ROWS if other.plan.operator.person else [("a",)], budget=9)
        session.protect(table("c2", "c2"), ROWS, budget=7)  # a table may be called as its own account
        session.protect(table("y", "d"), ROWS, budget=9)
        with pytest.raises(wp.LedgerError, match="'y' as a table of the account 'd'"):
            session.protect(table("z", "y"), ROWS, budget=5)
        assert (session.remaining("c2"), session.remaining("x"), session.remaining("y")) == (7, 7, 9)
    with Ledger(ledger) as kept:
        assert [account.name for account in kept.accounts()] == ["c2", "c2/c2", "c2/x", "d", "d/y"]


def test_a_table_is_not_opened_past_another_session(ledger: pathlib.Path) -> None:
    alone = wp.source("bought", shop=str, person="customer", at_most=20)

    class Meanwhile(list[dict[str, object]]):
        """Rows while which are read another session opens an account of its own for the table."""

        def __iter__(self) -> Iterator[dict[str, object]]:
            with wp.Session(ledger) as other:
                other.protect(alone, ROWS, budget=1)
            return super().__iter__()

    with wp.Session(ledger) as session:
        with pytest.raises(wp.LedgerError, match="as the account 'bought'"):
            session.protect(BOUGHT, Meanwhile(ROWS), budget=100)
        with pytest.raises(wp.SessionError, match="not protected"):
            session.release(BOUGHT.noisy_count(1))
        assert [account.name for account in session._ledger.accounts()] == ["bought"]


def test_the_explanation_says_what_a_shared_account_pays() -> None:
    both = BOUGHT.select(lambda r: r.shop).concat(VISITED.select(lambda r: r.page))
    said = "The account customers pays for bought, visited, in sum: epsilon x 25"
    assert f"{said}.\n" in both.explain()
    assert f"{said} = 2.5.\n" in both.explain(epsilon="0.1")
    assert "The account customers pays for bought, in sum: epsilon x 20." in BOUGHT.explain()
    assert "The account" not in PURCHASES.explain()


def test_a_batch_is_fitted_to_the_budget_of_the_account() -> None:
    batch = [BOUGHT.noisy_count(1), VISITED.noisy_count(3)]
    assert [m.epsilon for m in wp.fit_to_budget(batch, {"customers": 7})] == [Fraction(1, 5), Fraction(3, 5)]


def test_a_quantile_of_rows_a_person_is_bought_for_epsilon() -> None:
    people = wp.source("people", shop=str, person="customer", at_most=50, nested=True, account="customers")
    asked = wp.rows_per_person(people, epsilon=1000, quantile="0.5")
    assert wp.bill(asked) == {"customers": 1000}
    rows = [{"customer": who, "shop": "a"} for who in range(9) for _ in range(7)]
    with wp.Session() as session:
        session.protect(people, rows, budget=1000)
        assert session.release(asked).value == 7
    for wrong in (PURCHASES, wp.source("s", int), people.select(lambda rows: rows), "people"):
        with pytest.raises(wp.PlanError, match="nested form"):
            wp.rows_per_person(wrong, epsilon=1)


# --- evaluation on public data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_public_data_are_counted_and_checked_as_protected_ones(engine: str) -> None:
    shops = PURCHASES.select(lambda p: p.shop)
    assert dict(wp.evaluate(shops, {"purchases": ROWS}, engine)) == {"a": 3.0, "b": 1.0}
    assert dict(wp.evaluate(shops, {"purchases": iter(ROWS)}, engine)) == {"a": 3.0, "b": 1.0}
    with pytest.raises(wp.SourceRejected, match="no ids of persons"):
        wp.evaluate(shops, {"purchases": {("a", 1): 1.0}}, engine)
    once = wp.source("once", int, facts=["unit_weights"])
    assert dict(wp.evaluate(once, {"once": [1, 2]}, engine)) == {1: 1.0, 2: 1.0}
    pair = record_type({"src": INT, "dst": INT})
    for fact, data in (
        ("unit_weights", [(1, 1), (1, 1), (1, 1), (2, 2)]),
        ("unit_weights", {(1, 1): 0.5}),
        ("nonnegative", {(1, 1): -0.5}),
        ("whole_weights", {(1, 1): 0.5}),
        ("whole_weights", {(1, 1): -1}),
        ("symmetric", [(1, 2)]),
        ("simple", [(1, 1)]),
        ("simple", [(1, 2), (2, 1)]),
    ):
        source = wp.source("s", pair, unit_weight=2, facts=[fact], weights=True)
        with pytest.raises(wp.SourceRejected, match=fact):
            wp.evaluate(source, {"s": data}, engine)
        with pytest.raises(wp.SourceRejected, match=fact):
            wp.simulate(source.noisy_count(1, over=[(1, 1)]), {"s": data}, seed=1, engine=engine)
    assert dict(wp.evaluate(source, {"s": {(1, 2): 3, (2, 1): 0}}, engine)) == {(1, 2): 3.0}
    rows = wp.source("s", pair, unit_weight=2)
    assert dict(wp.evaluate(rows, {"s": {(1, 2): 2, (2, 1): 0}}, engine)) == {(1, 2): 2.0}
    with pytest.raises(wp.SourceRejected, match="above the unit weight 2: offer a list of all rows"):
        wp.evaluate(rows, {"s": {(1, 2): 3}}, engine)


# --- what the curator is warned of -----------------------------------------------------------------------------------


def file_of_edges(directory: pathlib.Path) -> pathlib.Path:
    path = directory / "edges.txt"
    path.write_text("1 2\n2 3\n")
    return path


def protected_twice(first: object, second: object, names: tuple[str, str] = ("a", "b")) -> None:
    with wp.Session() as session:
        for name, data in zip(names, (first, second), strict=True):
            session.protect(wp.source(name, src=int, dst=int), data, budget=1)


def test_one_file_or_object_under_two_names_is_noticed(tmp_path: pathlib.Path) -> None:
    import pandas

    path = file_of_edges(tmp_path)
    (tmp_path / "link.txt").hardlink_to(path)
    (tmp_path / "soft.txt").symlink_to(path)
    frame = pandas.DataFrame({"src": [1], "dst": [2]})
    folder = tmp_path / "folder"
    folder.mkdir()
    frame.to_parquet(folder / "part.parquet")
    plain, many = networkx.Graph([(1, 2)]), networkx.MultiDiGraph([(1, 2)])
    of_igraph = igraph.Graph([(0, 1)])
    for first, second in (
        (path, str(path)),
        (plain, plain.edges),
        (plain.edges, wp.EdgeList(plain.edges())),
        (many, many.out_edges(data=True)),
        (of_igraph, of_igraph.es),
        (of_igraph.es, wp.EdgeList(of_igraph.es)),
        (path, wp.EdgeList(path, directed=False)),
        (path, tmp_path / "link.txt"),
        (str(tmp_path / "soft.txt"), path),
        (frame, frame),
        (folder, folder / "part.parquet"),
        (folder / "*.parquet", folder),
        (str(folder / "part*.parquet"), folder / "p*.parquet"),
    ):
        with pytest.warns(wp.errors.WpinqWarning, match=r"'b' has the same data as 'a'") as caught:
            protected_twice(first, second)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        protected_twice(first, second, ("a", "a"))  # the same source anew


def test_a_file_of_this_machine_is_known_by_its_address_too(tmp_path: pathlib.Path) -> None:
    path = file_of_edges(tmp_path)
    odd = tmp_path / "a%20b#1.parquet"
    odd.write_bytes(b"")
    (tmp_path / "a b").write_bytes(b"")
    assert identities(f"file://{path}") == identities(path) != identities(odd) == identities(f"file://{odd}")
    assert identities(f"file:{path}") == identities(path)
    assert identities("s3://bucket/a.parquet") == {"s3://bucket/a.parquet"}


def test_what_a_source_was_before_is_remembered(tmp_path: pathlib.Path) -> None:
    """What was spent on it is spent, whatever is protected under that name now."""
    import pandas

    path, folder = file_of_edges(tmp_path), tmp_path / "folder"
    folder.mkdir()
    pandas.DataFrame({"src": [1], "dst": [2]}).to_parquet(folder / "part.parquet")
    with wp.Session() as session:
        first, other, third = (wp.source(name, src=int, dst=int) for name in "abc")
        session.protect(first, path, budget=1, version="1")
        session.protect(first, [(1, 2)], budget=1, version="2")
        session.protect(first, folder, budget=1, version="3")
        shutil.copy(folder / "part.parquet", folder / "more.parquet")
        session.protect(first, folder, budget=1, version="4")
        with pytest.warns(wp.errors.WpinqWarning, match=r"'b' has the same data as 'a'"):
            session.protect(other, path, budget=1)
        with pytest.warns(wp.errors.WpinqWarning, match=r"'c' has the same data as 'a'"):
            session.protect(third, folder / "more.parquet", budget=1)


def test_two_files_of_one_content_are_two() -> None:
    import pandas

    protected_twice([(1, 2)], [(1, 2)])
    protected_twice(networkx.Graph([(1, 2)]).edges, networkx.Graph([(1, 2)]).edges)
    protected_twice(pandas.DataFrame({"src": [1], "dst": [2]}), pandas.DataFrame({"src": [1], "dst": [2]}))


def test_rows_are_not_kept_alive_to_be_known_again() -> None:
    class Row(dict[str, object]):
        pass

    row = Row(src=1, dst=2, secret="undeclared")
    rows, left = [row], weakref.ref(row)
    del row
    with wp.Session(engine="reference") as session:
        session.protect(wp.source("a", src=int, dst=int, person="src", at_most=1), rows, budget=1)
        session.protect(wp.source("b", src=int, dst=int, person="src", at_most=1), rows, budget=1)  # unnoticed
        del rows
        gc.collect()
        assert left() is None


def test_a_source_that_was_refused_is_none(tmp_path: pathlib.Path) -> None:
    path = file_of_edges(tmp_path)
    with wp.Session() as session:
        with pytest.raises(wp.SourceRejected):
            session.protect(wp.source("a", src=int, dst=int, cap=1), path, budget=1)
        session.protect(wp.source("b", src=int, dst=int), path, budget=1)


def test_tables_of_one_account_may_be_one_file() -> None:
    with wp.Session() as session:
        lists = wp.source("lists", shop=str, person="customer", at_most=50, nested=True, account="customers")
        session.protect(lists, ROWS, budget=1)
        session.protect(BOUGHT, ROWS, budget=1)


def test_a_directed_list_under_an_undirected_unit_is_warned_of(tmp_path: pathlib.Path) -> None:
    path = file_of_edges(tmp_path)
    undirected = {"src": int, "dst": int, "unit": "one undirected edge"}
    for source, data, unit in (
        (wp.source("e", **undirected), path, None),
        (wp.source("e", **undirected, facts=["unit_weights"]), wp.EdgeList(path), None),
        (wp.source("e", src=int, dst=int), wp.EdgeList(path), "one Undirected friendship"),
        (wp.source("e", **undirected), [(1, 2), (2, 1)], None),
        (wp.source("e", **undirected), {(1, 2): 1.0}, None),
        (wp.source("e", **undirected), np.array([[1, 2], [2, 1]]), None),
    ):
        with wp.Session() as session, pytest.warns(wp.errors.WpinqWarning, match="directed=False"):
            session.protect(source, data, budget=1, unit=unit)
    path.write_text("1 2\n2 1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source, data in (
            (wp.source("e", **undirected, unit_weight=2, facts=["symmetric"]), path),
            (wp.source("e", **undirected, unit_weight=2), path),
            (wp.source("e", src=int, dst=int, unit="one directed edge"), path),
            (wp.source("e", **undirected), wp.EdgeList(path, directed=False, duplicates="drop")),
            (wp.source("e", **undirected), wp.EdgeList([(1, 2)], directed=False)),
            (wp.source("e", **undirected, facts=["unit_weights", "simple"]), [(1, 2)]),
            (wp.source("e", src=int, name=str, unit="one undirected edge"), [(1, "a")]),
        ):
            with wp.Session() as session:
                session.protect(source, data, budget=1)


def test_an_edge_billed_at_half_is_refused_wherever_it_is_declared(ledger: pathlib.Path) -> None:
    with pytest.raises(wp.PlanError, match="unit_weight=2"):
        wp.source("e", src=int, dst=int, facts=["symmetric"])
    with pytest.raises(wp.LanguageError, match="unit_weight=2"):
        wp.parse("source e(src: int, dst: int) with facts = [symmetric];")
    data = plan_to_json(wp.source("e", src=int, dst=int, unit_weight=2, facts=["symmetric"]).plan)
    data["nodes"][0]["arguments"]["unit_weight"] = {"fraction": "1"}
    data["digest"] = _digest(data)
    old = wp.Query(plan_from_json(json.loads(json.dumps(data))))  # answers of before can be read; nothing new is bought
    for use in (
        lambda: old.bill(epsilon=1),
        lambda: old.explain(epsilon=1),
        lambda: wp.bill(old.noisy_count(1)),
        lambda: wp.evaluate(old, {"e": [(1, 2), (2, 1)]}),
    ):
        with pytest.raises(wp.PlanError, match="unit_weight=2"):
            use()
    with wp.Session(ledger) as session:
        with pytest.raises(wp.PlanError, match="unit_weight=2"):
            session.protect(old, [(1, 2), (2, 1)], budget=1)
        assert list(session._ledger.entries()) == []


def test_a_plan_with_a_fact_that_its_records_cannot_have_is_none() -> None:
    for fact in ("symmetric", "simple"):
        data = plan_to_json(wp.source("e", n=int).plan)
        data["nodes"][0]["arguments"]["facts"] = {"texts": [fact]}
        data["digest"] = _digest(data)
        with pytest.raises(wp.PlanError, match="two fields"):
            plan_from_json(data)


def test_a_declaration_that_was_made_past_its_checks_is_refused(ledger: pathlib.Path) -> None:
    good = PURCHASES.plan.operator
    for change in ({"unit_weight": Fraction(1)}, {"source": "customers/bought"}):
        forged = object.__new__(Source)
        for item in fields(Source):
            object.__setattr__(forged, item.name, change.get(item.name, getattr(good, item.name)))
        query = wp.Query(Node(forged))
        with wp.Session(ledger) as session:
            with pytest.raises(wp.WpinqError, match=r"leave unit_weight out|cannot be used"):
                session.protect(query, ROWS, budget=1)
            assert list(session._ledger.entries()) == []
        with pytest.raises(wp.WpinqError, match=r"leave unit_weight out|cannot be used"):
            query.bill(epsilon=1)


def test_declarations_of_people_with_nothing_in_them_or_numbers_of_numpy() -> None:
    for nested in (False, True):
        with pytest.raises(wp.PlanError, match="declare fields"):
            wp.source("s", {}, person="id", at_most=3, nested=nested)
    three = wp.source("s", shop=str, person="id", at_most=np.int64(3))
    assert three.plan.digest == wp.source("s", shop=str, person="id", at_most=3).plan.digest
    for wrong in (Fraction(3), np.float64(3), True):
        with pytest.raises(wp.PlanError, match="an integer"):
            wp.source("s", shop=str, person="id", at_most=wrong)


def _digest(data: Any) -> str:
    """The digest that a plan of one source has."""
    from wpinq.plan.format import _argument_from_json

    arguments = {name: _argument_from_json(value) for name, value in data["nodes"][0]["arguments"].items()}
    return Node(Source(**arguments)).digest.hex()
