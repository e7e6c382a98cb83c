"""The move of a ledger from a file to PostgreSQL, with its whole history and all answers.

The old ledger is closed for ever first, so that no budget is there twice. The new one appends the same entries through
the functions of a service, which check the chain. So heads of the old ledger stay heads of the new one.
"""

from __future__ import annotations

import os
from contextlib import closing

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain
from wpinq.kernel.ledger.backup import close, without_service
from wpinq.kernel.ledger.debit import store_plan
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.postgres import PostgresStore
from wpinq.kernel.ledger.store import SQLiteStore
from wpinq.kernel.ledger.verification import verify

#: Entries on their way together.
_AT_ONCE = 1_000


def move(old: str | os.PathLike[str], new: str, expected_head: str | None = None) -> chain.Head:
    """Close a ledger file for ever, and copy all of it to an empty ledger in PostgreSQL.

    Returns the head of the new ledger.

    Parameters
    ----------
    old : path
        The ledger. One that was closed for the same place, but not copied to its end, is copied again.
    new : str
        The URL of a ledger without entries.
    expected_head : str, optional
        A head that the old ledger has had.

    Raises
    ------
    LedgerError
        When the old ledger is not whole or was moved before, when a service runs over it or left releases in flight,
        or when the new one has entries.
    """
    source = SQLiteStore(os.fspath(old), create=False)
    whole = os.path.realpath(old)
    with (
        Ledger(source, expected_head=expected_head) as ledger,
        without_service(whole),
        closing(PostgresStore(new)) as to,
    ):
        ledger.verify()
        last = source.read(chain.head)
        if not to.read(lambda target: chain.head(target) == chain.START or chain.holds(target, last)):
            raise LedgerError(f"{to.name} has entries of its own: make another ledger with wpinq ledger init")
        head = source.write(lambda transaction: close(transaction, to.name))
        source.snapshot(lambda transaction: to.write(lambda target: _copy(transaction, target, head)))
        to.snapshot(lambda target: verify(target, to.name, whole=True))
        reached = to.read(chain.head)
        content = {"to": to.name, "head": str(reached)}
        source.write(lambda transaction: chain.append(transaction, chain.CLOSE, "", 0, content, chain.CURATOR))
    return reached


def _copy(transaction: chain.Transaction, target: chain.Transaction, head: chain.Head) -> None:
    """Append all entries of a ledger to an empty one, with their answers and plans."""
    if chain.head(target) != chain.START:  # of a move that did not come to its end
        return
    entries = f"SELECT {chain.COLUMNS}, answers FROM entries LEFT JOIN answers ON entry = sequence ORDER BY sequence"
    for *row, answers in transaction.execute(entries):
        target.execute(chain.INSERT, row)
        if answers is not None:
            target.execute("INSERT INTO answers VALUES (?, ?, ?)", (row[4], row[0], answers))
        if row[0] % _AT_ONCE == 0:
            target.execute("SELECT")  # which sends what waits
    for digest, entry, plan in transaction.execute("SELECT digest, entry, plan FROM plans ORDER BY entry"):
        store_plan(target, digest, entry, plan)
    chain.append(target, chain.CARRY, "", 0, {"from": str(head), "plans": []}, chain.CURATOR)
