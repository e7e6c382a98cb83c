"""Plans that were admitted and failed on the worst data, and what told a machine's failure from a child's."""

from __future__ import annotations

import sys

import pytest

from tests.support.confined import told

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are confined by means of Linux"),
]

MEASURED = """
import random
taken, real = [], process.run_in_child

def measured(work, seconds, size, *rest):
    with open("/proc/self/statm") as statm:
        before = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    waiting = os.waitpid

    def waited(child, options):
        found, status, used = os.wait4(child, options)
        taken.append([used.ru_utime + used.ru_stime, seconds, used.ru_maxrss * 1024 - before, size])
        return found, status

    os.waitpid = waited
    try:
        return real(work, seconds, size, *rest)
    finally:
        os.waitpid = waiting

process.run_in_child = measured
texts = wp.source("texts", text=str, k=int, i=int, f=float, records_at_most=100, keys_at_most={"k": 20}, cap=100)
ROWS = [(f"{n:03}" + "," * 997, n // 20, 2**60 + n, 1e308) for n in range(100)]
def times(r, most, what):
    return F.flatten(F.map(F.split(r.text, ","), lambda s: what(F.range(0, r.i, limit=most), s)))
"""

WORST = {
    "these sorted": "texts.select_many(lambda r: F.sort(times(r, 40, lambda n, s: n)), limit=9)",
    "records of every piece, sorted": (
        "texts.select(lambda r: F.count(F.sort(times(r, 15, lambda n, s: F.map(n, lambda x: (x, r.k, r.f))))))"
    ),
    "lists of every piece, sorted": (
        "texts.select(lambda r: F.count(F.sort(F.map(F.split(r.text, ','), lambda s: F.range(0, r.i, limit=30)))))"
    ),
}


@pytest.mark.parametrize("plan", WORST)
def test_a_list_of_many_pieces_takes_no_more_memory_than_its_bound_on_the_worst_data(plan: str) -> None:
    found = told(
        MEASURED
        + f"""
with opened(limits=wp.Limits(seconds=10**6, memory="999GB")) as session:
    session.protect(texts, ROWS, budget=1)
    asked = {WORST[plan]}
    key = {{"int": 0}}.get(str(asked.plan.type), (0, 0))
    seen = outcome(lambda: session.release(asked.noisy_count(1, over=[key])))
    tell(seen=seen, taken=taken)
"""
    )
    assert found["seen"][0] == "answers"
    ((_, _, peak, granted),) = found["taken"]
    assert peak <= granted / 2  # of which half is for a margin


@pytest.mark.parametrize("sink", ["noisy_count(1, over=", "most_common(1, "])
def test_keys_of_a_million_letters_take_no_more_memory_than_their_bound(sink: str) -> None:
    found = told(
        MEASURED
        + f"""
with opened(limits=wp.Limits(seconds=10**6, memory="999GB")) as session:
    words = wp.source("words", str, records_at_most=100, cap=100)
    session.protect(words, [row[0] for row in ROWS], budget=1)
    session.release(words.{sink}["x" * 10**6 + str(i) for i in range(80)]))
    tell(taken=taken)
"""
    )
    ((_, _, peak, granted),) = found["taken"]
    assert peak <= granted / 2


def test_large_keys_are_refused_before_the_debit_as_many_small_ones_are() -> None:
    found = told(
        MEASURED
        + """
seen = []
with opened() as session:
    session.protect(texts, ROWS, budget=9)
    words = texts.select(lambda r: r.text)
    large = ["x" * 10**6 + str(i) for i in range(60)]
    handle = session.release(words.noisy_count(1))
    for work in (
        lambda: session.release(words.noisy_count(0.5, over=large)),
        lambda: session.release(words.noisy_count_above(0.5, large, above=0)),
        lambda: handle.at(large),
        lambda: session.release(words.noisy_count(0.5, over=["x"])),
    ):
        seen.append([outcome(work)[0], str(session.spent("texts"))])
    tell(seen=seen)
"""
    )
    assert found["seen"] == [["PlanError", "1"], ["PlanError", "1"], ["PlanError", "1"], ["answers", "1.5"]]


@pytest.mark.parametrize("call", ["fork", "memfd_create"])
def test_a_machine_that_cannot_fork_is_told_as_a_child_that_fails_and_at_its_moment(call: str) -> None:
    found = told(
        MEASURED
        + f"""
seen, whole = [], os.{call}

def refused(*given):
    raise BlockingIOError(11, "4711")

for fails in (False, True):
    with opened() as session:
        session.protect(texts, ROWS, budget=9)
        clock = session._releaser._evaluator.clock
        begun = clock.now()
        os.{call} = refused if fails else whole
        taken.clear()
        first = outcome(lambda: session.release(texts.select(lambda r: r.k).noisy_count(1, over=[1])))
        os.{call} = whole
        seen.append([first[0], clock.now() - begun, session.suspended(), *first[2:]])
tell(seen=seen)
"""
    )
    answered, failed = found["seen"]
    assert [answered[0], failed[0]] == ["answers", "EvaluationFailed"]
    assert answered[1] == failed[1]
    assert failed[2:] == [["texts"], "None", "None"]


def test_a_child_has_no_file_above_a_limit_that_was_lowered_and_leaves_no_core_to_a_program() -> None:
    found = told(
        """
import math, resource
with open("/dev/null") as nothing:
    os.dup2(nothing.fileno(), 3000)
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))

def look():
    import ctypes
    try:
        os.fstat(3000)
        open_still = True
    except OSError:
        open_still = False
    return json.dumps([open_still, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)]).encode()

process.restrict = lambda *files, **required: None  # what it is could not be asked
left = process.run_in_child(look, 10, 10**9, math.inf, AtTheEnd(), [])
os.fstat(3000)
tell(left=json.loads(left))
"""
    )
    assert found["left"] == [False, 0]
