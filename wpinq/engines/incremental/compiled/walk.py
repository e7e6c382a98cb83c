"""The text of the inner loop of a random walk by swaps that preserve degrees, run inside generated code.

A step draws two edges {a, b}, {c, d} and proposes {a, d}, {c, b} or {a, c}, {d, b}, either with probability 1/2, so
that the proposal is symmetric. Loops and edges that are there already are refused. What is proposed is evaluated, and
kept with probability `min(1, exp(pow · (score before − score after)))`.
"""

from __future__ import annotations

from wpinq.engines.incremental.compiled.tables import Table


def swap_chunk(source: Table, changes: Table, moved: list[Table]) -> str:
    """The function `swap_chunk(A, edges, seeds, tallies, symmetric, steps, real_pow)` for a source of edges.

    `tallies` counts proposals that were evaluated, those accepted, and steps done; a step for which a table is full
    is not done, and takes nothing from the random numbers.
    """
    half = source.width // 2

    def end(name: str) -> list[str]:
        return [f"{name}{i}" for i in range(half)]

    def read(row: str, names: list[str]) -> list[str]:
        return [f"        {name} = edges[{row}, {i}]" for i, name in enumerate(names)]

    def same(a: str, b: str) -> str:
        return "(" + " and ".join(f"{x} == {y}" for x, y in zip(end(a), end(b), strict=True)) + ")"

    def record(a: str, b: str) -> str:
        return ", ".join([*end(a), *end(b)])

    def change(a: str, b: str, weight: str, indent: str = "        ") -> list[str]:
        return [f"{indent}gather_{source.width}(A, {changes.name}, {record(a, b)}, {weight})"]

    def found(a: str, b: str) -> str:
        return f"find_{source.width}(A, {source.name}, {record(a, b)}) != 0"

    edge_changes = [("a", "b", "-1.0"), ("c", "d", "-1.0"), ("a", "q", "1.0"), ("p", "b", "1.0")]
    lines = [
        "    edge_count = len(edges)",
        "    done = 0",
        "    while done < steps:",
        *(f"        clear(A, {table.name})" for table in moved),
        "        first, second = seeds[0], seeds[1]",
        "        i, j = int(draw(seeds) * edge_count), int(draw(seeds) * edge_count)",
        "        turned = draw(seeds) < 0.5",
        *read("i", end("a") + end("b")),
        *read("j", end("c") + end("d")),
        *(f"        p{i}, q{i} = (d{i}, c{i}) if turned else (c{i}, d{i})" for i in range(half)),
        "        done += 1",
        f"        if {same('a', 'q')} or {same('p', 'b')} or {same('a', 'p')} or {same('b', 'q')}:",
        "            continue",
        f"        if {found('a', 'q')} or {found('p', 'b')}:",
        "            continue",
        f"        if symmetric == 0 and ({found('q', 'a')} or {found('b', 'p')}):",
        "            continue",
        "        before = as_float(load(A, SCORE))",
        *(line for a, b, weight in edge_changes for line in change(a, b, weight)),
        "        if symmetric != 0:",
        *(line for a, b, weight in edge_changes for line in change(b, a, weight, "            ")),
        "        process(A)",
        "        if load(A, STATUS) != 0:",
        "            undo(A, load(A, LOG_START))",
        "            seeds[0], seeds[1] = first, second",
        "            done -= 1",
        "            break",
        "        tallies[0] += 1",
        "        worse = as_float(load(A, SCORE)) - before",
        "        if worse <= 0.0 or draw(seeds) < exp(-real_pow * worse):",
        "            tallies[1] += 1",
        "            save(A, LOG, load(A, LOG_START))",
        *(f"            edges[i, {half + i}] = q{i}" for i in range(half)),
        *(f"            edges[j, {i}] = p{i}" for i in range(half)),
        *(f"            edges[j, {half + i}] = b{i}" for i in range(half)),
        "        else:",
        "            undo(A, load(A, LOG_START))",
        "    tallies[2] += done",
    ]
    return "\n".join(["@njit", "def swap_chunk(A, edges, seeds, tallies, symmetric, steps, real_pow):", *lines])
