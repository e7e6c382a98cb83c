"""Writes examples/data/people.csv: 3,000 people who do not exist, for tutorials and tests.

    python examples/make_people.py

The same file each time. Salaries grow with age and differ by city; nothing in it is about anybody.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

FILE = Path(__file__).resolve().parent / "data" / "people.csv"
CITIES = {"Aldham": 12, "Brook": 8, "Carwen": 20, "Dunley": 5, "Eastow": 30, "Farley": 3, "Granby": 15, "Hollin": 7}


def people(count: int = 3_000, seed: int = 1) -> list[tuple[int, str, str, int, int]]:
    """Rows of id, city, sex, age and salary a year."""
    draw = random.Random(seed)
    rows = []
    for person in range(1, count + 1):
        (city,) = draw.choices(list(CITIES), weights=list(CITIES.values()))
        age = min(99, max(16, round(draw.gammavariate(8, 5.2))))
        earning = draw.lognormvariate(10.25 + 0.012 * min(age, 60) + 0.02 * len(city), 0.45)
        rows.append((person, city, draw.choice("fm"), age, round(earning / 100) * 100))
    return rows


if __name__ == "__main__":
    with FILE.open("w", newline="", encoding="utf-8") as file:
        written = csv.writer(file, lineterminator="\n")
        written.writerow(("id", "city", "sex", "age", "salary"))
        written.writerows(people())
