"""Generated modules have one text, whatever the process met before: numba finds its machine code by it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from wpinq.engines.delta.compiled.routine import name
for spelling in sorted([f"{letter}{number}" for letter in "abegknprtvwxyz" for number in range(60)],
                       reverse=sys.argv[1] == "down"):
    name(spelling)
import hashlib
import wpinq as wp
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator, Goal, SwapWalk
from wpinq.engines.delta.compiled.adjacency import state
from wpinq.engines.delta.compiled.hash_tables import evaluator
from wpinq.graphs import recipes

def shown(text):
    print(hashlib.sha256(text.encode()).hexdigest())
    raise CannotCompile("shown")

evaluator.import_module = state.import_module = shown
edges = wp.source("edges", src=int, dst=int)
for query in (recipes.triangles_by_degree(edges, 20), recipes.joint_degrees(edges)):
    for attempt in (lambda: CompiledEvaluator([query.plan], {"edges": {}}),
                    lambda: SwapWalk([Goal(query.plan, 1.0, {})], "edges", [(1, 2), (3, 4), (2, 3)])):
        try:
            attempt()
        except CannotCompile:
            pass
"""


def test_texts_do_not_depend_on_the_order_in_which_names_are_met() -> None:
    up, down = (
        subprocess.run([sys.executable, "-c", PROGRAM, order], capture_output=True, text=True, check=True).stdout
        for order in ("up", "down")
    )
    assert up == down
    assert len(set(up.split())) == 4
