"""Statements of SQL, each with the chain that it stands for, or with the words that refuse it.

They are our own, after the forms in the documentation of BigQuery, Snowflake, AWS Clean Rooms, SmartNoise and DPSQL+.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import wpinq as wp
from wpinq import functions as F
from wpinq.tables.released import Tabulation

people = wp.source(
    "people",
    city=str,
    sex=wp.category("f", "m"),
    age=int,
    salary=float,
    job=str | None,
    born=dt.date,
    fee=wp.decimal(2),
    score=int | None,
    seen=dt.datetime,
)
orders = wp.source("orders", city=str, price=float, item=str, code=int | None)
stores = wp.source("stores", city=str, region=wp.category("north", "south"), code=int | None)
views = wp.source("views", page=str, ms=int, cost=float, person="user_id", at_most=4, nested=True)
clinic = wp.people(
    "clinic",
    id=("pid", int),
    home=wp.table(sex=wp.category("f", "m"), born=int, at_most=1),
    stays=wp.table(ward=str, day=dt.date, cost=float, at_most=5),
    drugs=wp.table(drug=str, day=dt.date, at_most=3),
)
SOURCES = [people, orders, stores, views, clinic]


def _person(number: int) -> tuple[Any, ...]:
    day = dt.date(1950 + number % 60, 1 + number % 12, 1 + number % 28)
    job, score = [None, "nurse", "cook", "smith"][number % 4], [None, -3, 0, 4, 7][number % 5]
    seen = dt.datetime(2024, 1 + number % 12, 1 + number % 28, number % 24, number % 60)
    fee = Decimal(number % 7) / 4
    return (
        ["Oslo", "Rome", "Bergen"][number % 3],
        "fm"[number % 2],
        number % 90,
        997.5 * number,
        job,
        day,
        fee,
        score,
        seen,
    )


DATA: dict[str, Any] = {
    "people": [_person(number) for number in range(120)],
    "orders": [(["Oslo", "Rome", "Ulm"][n % 3], float(n % 11), f"i{n % 4}", [None, 1, 2, 3][n % 4]) for n in range(40)],
    "stores": [("Oslo", "north", 1), ("Rome", "south", None), ("Oslo", "north", 2), ("Ulm", "south", 1)],
    "views": [{"page": f"p{n % 3}", "ms": n * 7 % 100, "cost": n / 4, "user_id": n % 9} for n in range(50)],
    "clinic": {
        "home": [{"sex": "fm"[n % 2], "born": 1930 + n, "pid": n} for n in range(8)],
        "stays": [
            {"ward": f"w{n % 3}", "day": dt.date(2024, 1, 1 + n % 20), "cost": 10.0 * n, "pid": n % 10}
            for n in range(30)
        ],
        "drugs": [{"drug": f"d{n % 2}", "day": dt.date(2024, 1, 3 + n % 20), "pid": n % 7} for n in range(14)],
    },
}


@dataclass(frozen=True)
class Accepted:
    """A statement and its chain, which gets epsilon 1 unless the statement has its own."""

    form: str
    text: str
    chain: Callable[[], Tabulation]
    options: Mapping[str, Any] = field(default_factory=lambda: {"epsilon": 1})


@dataclass(frozen=True)
class Refused:
    """A statement, its column of the fault, and words of its correction."""

    form: str
    text: str
    column: int
    words: str
    options: Mapping[str, Any] = field(default_factory=lambda: {"epsilon": 1})


OPTIONS: dict[str, Any] = {}
CITIES = ["Oslo", "Rome"]


def _agg(query: Any, **aggregates: Any) -> Any:
    return query.agg(**aggregates, epsilon=1)


ACCEPTED = [
    Accepted("BigQuery", "SELECT COUNT(*) AS n FROM people", lambda: _agg(people, n=wp.count())),
    Accepted(
        "BigQuery",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 0) sex, COUNT(*) AS n FROM people GROUP BY sex",
        lambda: _agg(people.by("sex"), n=wp.count()),
        OPTIONS,
    ),
    Accepted(
        "BigQuery",
        "SELECT WITH DIFFERENTIAL_PRIVACY\n  OPTIONS(epsilon=1, max_groups_contributed=2,\n"
        " privacy_unit_column=user_id) "
        "  page, COUNT(*) n FROM views WHERE page IN ('p0', 'p1') GROUP BY page",
        lambda: _agg(views.unnest(lambda rows: F.first(rows, 2)).by("page", keys=["p0", "p1"]), n=wp.count()),
        OPTIONS,
    ),
    Accepted(
        "BigQuery",
        "SELECT item, AVG(CLAMP(price, 0, 10)) AS price, SUM(CLAMP(price, 0, 10)) AS total FROM orders "
        "WHERE item IN ('i0', 'i1') GROUP BY item",
        lambda: _agg(orders.by("item", keys=["i0", "i1"]), price=wp.mean("price", 0, 10), total=wp.sum("price", 0, 10)),
    ),
    Accepted(
        "BigQuery",
        "SELECT COUNTIF(age >= 18) AS adults FROM people",
        lambda: _agg(people, adults=wp.sum(lambda p: F.where(p.age >= 18, 1, 0), 0, 1)),
    ),
    Accepted(
        "BigQuery",
        "SELECT PERCENTILE_CONT(CLAMP(age, 0, 90), 0.9) AS old FROM people",
        lambda: _agg(people, old=wp.quantile("age", 0.9, range(91))),
    ),
    Accepted(
        "BigQuery",
        "SELECT COUNT(DISTINCT city) AS cities FROM `people`",
        lambda: _agg(people, cities=wp.count_distinct("city")),
    ),
    Accepted(
        "BigQuery",
        "SELECT sex, VAR_POP(CLAMP(age, 0, 90)) v, STDDEV_POP(CLAMP(age, 0, 90)) s FROM people GROUP BY 1",
        lambda: _agg(people.by("sex"), v=wp.stats.var("age", 0, 90), s=wp.stats.std("age", 0, 90)),
    ),
    Accepted(
        "BigQuery",
        "SELECT EXTRACT(YEAR FROM born) AS year, COUNT(*) n FROM people WHERE EXTRACT(YEAR FROM born) BETWEEN 1960 AND "
        "1969 GROUP BY year",
        lambda: _agg(people.by(year=lambda p: F.year(p.born), keys=range(1960, 1970)), n=wp.count()),
    ),
    Accepted(
        "BigQuery",
        "SELECT IF(age < 18, 'child', 'adult') AS stage, COUNT(*) n FROM people GROUP BY stage",
        lambda: _agg(people.by(stage=lambda p: F.where(p.age < 18, "child", "adult")), n=wp.count()),
    ),
    Accepted(
        "BigQuery",
        "SELECT AVG(CLAMP(SAFE_DIVIDE(salary, age), 0, 5000)) AS a FROM people",
        lambda: _agg(people, a=wp.mean(lambda p: p.salary / p.age, 0, 5000)),
    ),
    Accepted(
        "BigQuery",
        "SELECT COUNT(*) AS n FROM people WHERE STARTS_WITH(city, 'O') AND SUBSTR(city, 2, 2) = 'sl'",
        lambda: _agg(
            people.where(lambda p: F.starts_with(p.city, "O") & (F.substring(p.city, 1, 2) == "sl")), n=wp.count()
        ),
    ),
    Accepted(
        "BigQuery",
        "SELECT COUNT(*) AS n FROM people WHERE DATE_DIFF(DATE '2000-01-01', born, DAY) > 3650",
        lambda: _agg(
            people.where(lambda p: (dt.date(2000, 1, 1) - p.born) // dt.timedelta(days=1) > 3650), n=wp.count()
        ),
    ),
    Accepted(
        "Snowflake",
        "SELECT sex, COUNT(*) AS c, DP_INTERVAL_LOW(c), DP_INTERVAL_HIGH(c) FROM people GROUP BY sex",
        lambda: _agg(people.by("sex"), c=wp.count()),
    ),
    Accepted(
        "Snowflake",
        "SELECT SUM(LEAST(GREATEST(salary, 0), 100000)) AS total FROM people",
        lambda: _agg(people, total=wp.sum("salary", 0, 100_000)),
    ),
    Accepted(
        "Snowflake",
        "SELECT AVG(GREATEST(0, LEAST(90, age))) AS age, COUNT(*) AS n FROM people",
        lambda: _agg(people, age=wp.mean("age", 0, 90), n=wp.count()),
    ),
    Accepted(
        "Snowflake",
        "SELECT city, COUNT(*) AS n FROM people WHERE city IN ('Oslo', 'Rome') AND age > 30 GROUP BY city",
        lambda: _agg(people.where(lambda p: p.age > 30).by("city", keys=CITIES), n=wp.count()),
    ),
    Accepted(
        "Snowflake",
        "SELECT COUNT_IF(sex = 'f') AS women, COUNT(*) n FROM people",
        lambda: _agg(people, women=wp.sum(lambda p: F.where(p.sex == "f", 1, 0), 0, 1), n=wp.count()),
    ),
    Accepted(
        "Snowflake",
        "SELECT STDDEV(CLAMP(salary, 0, 100000)) AS s FROM people WHERE salary > 0",
        lambda: _agg(people.where(lambda p: p.salary > 0), s=wp.stats.std("salary", 0, 100_000)),
    ),
    Accepted(
        "Snowflake",
        "SELECT MEDIAN(CLAMP(age, 0, 90)) AS m FROM people WHERE city = 'Rome'",
        lambda: _agg(people.where(lambda p: p.city == "Rome"), m=wp.median("age", range(91))),
    ),
    Accepted(
        "Snowflake",
        "WITH grown AS (SELECT city, CLAMP(age, 18, 90) AS age FROM people WHERE age >= 18) "
        "SELECT AVG(age) AS age FROM grown",
        lambda: _agg(
            people.where(lambda p: p.age >= 18).select(city="city", age=lambda p: F.max(F.min(p.age, 90), 18)),
            age=wp.mean("age", 18, 90),
        ),
    ),
    Accepted(
        "Snowflake",
        "SELECT DATE_TRUNC('month', seen) AS month, COUNT(*) n FROM people WHERE DATE_TRUNC('month', seen) IN "
        "('2024-01-01T00:00:00', '2024-02-01T00:00:00') GROUP BY month",
        lambda: _agg(
            people.by(
                month=lambda p: F.truncate(p.seen, "month"), keys=[dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 1)]
            ),
            n=wp.count(),
        ),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT COUNT(*) AS n, AVG(CLAMP(price, 0, 10)) p FROM orders INNER JOIN stores USING (city)",
        lambda: _agg(orders.join(stores, on="city"), n=wp.count(), p=wp.mean("price", 0, 10)),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT s.region, COUNT(*) AS n FROM orders o JOIN stores s ON o.city = s.city GROUP BY s.region",
        lambda: _agg(orders.join(stores, on="city").by("region"), n=wp.count()),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT COUNT(*) AS n FROM orders o JOIN stores s ON s.city = o.city AND o.code = s.code WHERE o.price > 2.5",
        lambda: _agg(
            orders.where(lambda o: ~F.is_null(o.code)).join(stores, on=["city", "code"]).where(lambda r: r.price > 2.5),
            n=wp.count(),
        ),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT COUNT(*) AS n FROM (SELECT city FROM orders INTERSECT SELECT city FROM stores) AS both_sides",
        lambda: _agg(orders.select(city="city").intersect(stores.select(city="city")), n=wp.count()),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT city, COUNT(*) n FROM (SELECT city FROM orders UNION ALL SELECT city AS town FROM stores) t "
        "WHERE city IN ('Oslo', 'Rome') GROUP BY city",
        lambda: _agg(
            orders.select(city="city").concat(stores.select(town="city").select(city="town")).by("city", keys=CITIES),
            n=wp.count(),
        ),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT COUNT(*) n FROM (SELECT city FROM orders EXCEPT SELECT city FROM stores) t",
        lambda: _agg(orders.select(city="city").difference(stores.select(city="city")), n=wp.count()),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT COUNT(DISTINCT CASE WHEN price > 5 THEN item END) AS items FROM orders",
        lambda: _agg(orders, items=wp.count_distinct(lambda o: F.where(o.price > 5, o.item, None))),
    ),
    Accepted(
        "AWS Clean Rooms",
        "SELECT COUNT(*) AS n FROM orders WHERE item LIKE 'i%' AND NOT item LIKE '%3%'",
        lambda: _agg(orders.where(lambda o: F.starts_with(o.item, "i") & ~F.contains(o.item, "3")), n=wp.count()),
    ),
    Accepted(
        "SmartNoise",
        "SELECT sex, COUNT(*) AS n, AVG(CLAMP(age, 0, 90)) AS age FROM people GROUP BY sex HAVING COUNT(*) > 20",
        lambda: _agg(people.by("sex", keys=["f", "m"], above=20), n=wp.count(), age=wp.mean("age", 0, 90)),
    ),
    Accepted(
        "SmartNoise",
        "SELECT city, COUNT(*) AS n FROM people WHERE city IN ('Oslo', 'Rome') GROUP BY city HAVING n > 12.5",
        lambda: _agg(people.by("city", keys=CITIES, above=12.5), n=wp.count()),
    ),
    Accepted(
        "SmartNoise",
        "SELECT FLOOR(age / 10) AS decade, COUNT(*) n FROM people WHERE FLOOR(age / 10) BETWEEN 0 AND 8 "
        "GROUP BY decade",
        lambda: _agg(people.by(decade=lambda p: p.age // 10, keys=range(9)), n=wp.count()),
    ),
    Accepted(
        "SmartNoise",
        "SELECT VARIANCE(CLAMP(age, 0, 90)) AS v FROM people WHERE job IS NOT NULL",
        lambda: _agg(people.where(lambda p: ~F.is_null(p.job)), v=wp.stats.var("age", 0, 90)),
    ),
    Accepted(
        "SmartNoise",
        "SELECT COUNT(score) AS scored FROM people",
        lambda: _agg(people, scored=wp.sum(lambda p: F.where(~F.is_null(p.score), 1, 0), 0, 1)),
    ),
    Accepted(
        "SmartNoise",
        "SELECT SUM(CLAMP(COALESCE(score, 0), -5, 5)) AS s FROM people",
        lambda: _agg(people, s=wp.sum(lambda p: F.where(F.is_null(p.score), 0, p.score), -5, 5)),
    ),
    Accepted(
        "SmartNoise",
        "SELECT MIN(CLAMP(age, 0, 90)) AS low, MAX(CLAMP(age, 0, 90)) AS high FROM people",
        lambda: _agg(people, low=wp.quantile("age", "0.01", range(91)), high=wp.quantile("age", "0.99", range(91))),
    ),
    Accepted(
        "SmartNoise",
        "SELECT sex, job, COUNT(*) AS n FROM people WHERE job IN ('cook', 'nurse') GROUP BY sex, job",
        lambda: _agg(people.by("sex", "job", keys={"job": ["cook", "nurse"]}), n=wp.count()),
    ),
    Accepted(
        "SmartNoise",
        "SELECT CORR(CLAMP(age, 0, 90), CLAMP(salary, 0, 1e5)) AS r, "
        "COVAR_POP(CLAMP(age, 0, 90), CLAMP(salary, 0, 1e5)) AS c FROM people",
        lambda: _agg(
            people,
            r=wp.stats.corr("age", 0, 90, "salary", 0, 1e5),
            c=wp.stats.cov("age", 0, 90, "salary", 0, 1e5),
        ),
    ),
    Accepted(
        "DPSQL+",
        "SELECT COUNT(*) AS heavy FROM (SELECT user_id, SUM(ms) AS total FROM views GROUP BY user_id) AS u "
        "WHERE total > 150",
        lambda: _agg(
            views.select(total=lambda rows: F.sum(rows, lambda r: r.ms)).where(lambda u: u.total > 150),
            heavy=wp.count(),
        ),
    ),
    Accepted(
        "DPSQL+",
        "SELECT AVG(CLAMP(cost, 0, 50)) AS cost FROM (SELECT AVG(cost) AS cost FROM views WHERE page = 'p1' "
        "GROUP BY user_id) AS u",
        lambda: _agg(
            views.where(lambda rows: F.count(F.filter(rows, lambda r: r.page == "p1")) > 0).select(
                cost=lambda rows: (
                    F.sum(F.filter(rows, lambda r: r.page == "p1"), lambda r: r.cost)
                    / F.count(F.filter(rows, lambda r: r.page == "p1"))
                )
            ),
            cost=wp.mean("cost", 0, 50),
        ),
    ),
    Accepted(
        "DPSQL+",
        "SELECT ward, COUNT(*) AS n FROM stays WHERE ward IN ('w0', 'w1') GROUP BY ward",
        lambda: _agg(clinic.unnest("stays").by("ward", keys=["w0", "w1"]), n=wp.count()),
    ),
    Accepted(
        "DPSQL+",
        "SELECT sex, SUM(CLAMP(cost, 0, 200)) AS cost FROM clinic.stays AS s JOIN clinic.home AS h ON s.pid = h.pid "
        "GROUP BY sex",
        lambda: _agg(
            clinic.where(lambda p: ~F.is_null(p.home))
            .unnest("stays", sex=lambda p: p.home.sex, born=lambda p: p.home.born)
            .by("sex"),
            cost=wp.sum("cost", 0, 200),
        ),
    ),
    Accepted(
        "DPSQL+",
        "SELECT COUNT(*) AS n FROM stays s JOIN drugs d USING (pid) "
        "WHERE d.day >= s.day AND d.day < s.day + INTERVAL 7 DAY",
        lambda: _agg(
            clinic.unnest(
                lambda p: F.flatten(
                    F.map(
                        p.stays,
                        lambda s: F.map(
                            p.drugs,
                            lambda d: F.record(ward=s.ward, day=s.day, cost=s.cost, drug=d.drug, day_right=d.day),
                        ),
                    )
                )
            ).where(lambda r: (r.day_right >= r.day) & (r.day_right < F.offset(r.day, 7, "day"))),
            n=wp.count(),
        ),
    ),
    Accepted(
        "DPSQL+",
        "SELECT stays, COUNT(*) AS people FROM (SELECT pid, COUNT(*) AS stays FROM stays GROUP BY pid) AS u "
        "WHERE stays IN (1, 2, 3) GROUP BY stays",
        lambda: _agg(
            clinic.where(lambda p: F.count(p.stays) > 0)
            .select(stays=lambda p: F.count(p.stays))
            .by("stays", keys=[1, 2, 3]),
            people=wp.count(),
        ),
    ),
    Accepted(
        "DPSQL+",
        "SELECT MAX(CLAMP(day, DATE '2024-01-01', DATE '2024-01-31')) AS last FROM stays",
        lambda: _agg(
            clinic.unnest("stays"),
            last=wp.quantile("day", "0.99", [dt.date(2024, 1, day) for day in range(1, 32)]),
        ),
    ),
    Accepted(
        "Standard",
        "SELECT COUNT(*) FILTER (WHERE age > 40) AS older, AVG(CLAMP(age, 0, 90)) FILTER (WHERE sex = 'm') AS men "
        "FROM people",
        lambda: _agg(
            people,
            older=wp.sum(lambda p: F.where(p.age > 40, 1, 0), 0, 1),
            men=wp.mean(lambda p: F.where(p.sex == "m", p.age, None), 0, 90),
        ),
    ),
    Accepted(
        "Standard",
        "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY CLAMP(age, 0, 90)) AS q, COUNT(*) AS n FROM people",
        lambda: people.agg(q=wp.quantile("age", 0.25, range(91)), n=wp.count(), epsilon=2, split={"q": 3, "n": 1}),
        {"epsilon": 2, "split": {"q": 3, "n": 1}},
    ),
    Accepted(
        "Standard",
        "SELECT age % 7 AS r, COUNT(*) AS n FROM people WHERE fee * 2 > 1.5 AND age % 7 IN (0, 1, 2) GROUP BY r",
        lambda: _agg(
            people.where(lambda p: p.fee * 2 > Decimal("1.5")).by(
                r=lambda p: F.where((p.age < 0) & (p.age % 7 != 0), p.age % 7 - 7, p.age % 7), keys=[0, 1, 2]
            ),
            n=wp.count(),
        ),
    ),
    Accepted(
        "Standard",
        "SELECT CASE sex WHEN 'f' THEN 1 ELSE 0 END AS woman, COUNT(*) AS n FROM people "
        "WHERE born < '1990-01-01' AND score <> 4 GROUP BY woman",
        lambda: _agg(
            people.where(lambda p: (p.born < dt.date(1990, 1, 1)) & F.where(F.is_null(p.score), None, p.score != 4)).by(
                woman=lambda p: F.where(p.sex == "f", 1, 0)
            ),
            n=wp.count(),
        ),
    ),
]

REFUSED = [
    Refused(
        "BigQuery",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-5) COUNT(*) FROM people",
        1,
        "delta is 0",
        {},
    ),
    Refused("BigQuery", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) FROM people", 1, "leave one out"),
    Refused(
        "BigQuery", "SELECT SUM(age, contribution_bounds_per_group => (0, 90)) FROM people", 17, "CLAMP(x, 0, 100)"
    ),
    Refused("BigQuery", "SELECT city, COUNT(*) AS n FROM people GROUP BY city", 49, "WHERE city IN"),
    Refused(
        "BigQuery",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=2) COUNT(*) AS n FROM people",
        1,
        "nested=True",
        {},
    ),
    Refused("Snowflake", "SELECT * FROM people", 8, "COUNT(*)"),
    Refused("Snowflake", "SELECT AVG(salary) AS s FROM people", 12, "AVG(CLAMP(x, 0, 100))"),
    Refused("Snowflake", "SELECT AVG(LEAST(GREATEST(score, 0), 9)) AS s FROM people", 18, "COALESCE"),
    Refused("AWS Clean Rooms", "SELECT COUNT(*) AS n FROM orders LEFT JOIN stores USING (city)", 44, "JOIN ... USING"),
    Refused(
        "AWS Clean Rooms",
        "SELECT COUNT(*) AS n FROM people WHERE city IN (SELECT city FROM stores)",
        56,
        "list constants",
    ),
    Refused(
        "SmartNoise",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC",
        61,
        "sort the released table",
    ),
    Refused(
        "SmartNoise", "SELECT SUM(CLAMP(age, 0, 90)) / COUNT(*) AS a FROM people", 8, "compute on the released table"
    ),
    Refused(
        "SmartNoise", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING AVG(age) > 3", 59, "COUNT(*) > 20"
    ),
    Refused("DPSQL+", "SELECT COUNT(*) AS n FROM stays s JOIN drugs d ON s.day = d.day", 40, "USING (pid)"),
    Refused(
        "DPSQL+",
        "SELECT COUNT(*) AS n FROM (SELECT city, COUNT(*) AS k FROM orders GROUP BY city) AS t",
        76,
        "the id of people",
    ),
    Refused("Standard", "SELECT COUNT(*) OVER (PARTITION BY city) FROM people", 17, "GROUP BY"),
    Refused("Standard", "SELECT COUNT(*) AS n FROM people WHERE LOWER(city) = 'oslo'", 40, "list the spellings"),
    Refused("Standard", "SELECT AVG(CLAMP(salary / age, 0, 9)) AS a FROM people", 18, "NULLIF(b, 0)"),
    Refused("Standard", "SELECT COUNT(*) AS n FROM people WHERE name = 1", 40, "there is age"),
    Refused("Standard", 'SELECT COUNT(*) AS n FROM people WHERE city = "Oslo"', 47, "'Oslo'"),
    Refused("Standard", "DROP TABLE people", 1, "only SELECT"),
]

ATOMS = [
    "score = 4", "score <> 4", "score > 0", "score <= 0", "score BETWEEN -3 AND 4", "score IN (4, 7)",
    "score NOT IN (4, -3)", "score IS NULL", "score IS NOT NULL", "job = 'cook'", "job <> 'cook'", "job LIKE 'c%'",
    "job IS DISTINCT FROM 'cook'", "job IS NOT DISTINCT FROM NULL", "score = age", "score = NULLIF(score, 4)",
    "COALESCE(score, age) > 3", "score % 4 = -3", "age % 4 = 3", "CASE WHEN score > 0 THEN job = 'cook' END",
    "CASE score WHEN 4 THEN 1 WHEN 7 THEN 2 ELSE 0 END = 1", "age / 7 > 5.5", "FLOOR(age / 7) = 5", "fee * 3 >= 1.5",
    "fee = 0.25", "born < '1980-01-01'", "born + INTERVAL 1 MONTH > DATE '1970-03-01'", "EXTRACT(MONTH FROM born) = 3",
    "DATE_TRUNC('month', born) = DATE '1961-12-01'", "LENGTH(job) = 4", "city || '!' = 'Oslo!'",
    "CLAMP(score, 0, 5) = 5",
    "GREATEST(age, 40) = 40", "CAST(age AS VARCHAR) = '7'", "SUBSTR(city, 2, 3) = 'slo'", "ABS(score) = 3",
    "score = NULL",
    "salary / NULLIF(age, 0) > 900", "score + age > 20", "seen >= '2024-05-01 10:00:00'",
]  # fmt: skip
"""Conditions over people on which databases agree."""
