"""Labels: what a caller writes beside a debit, to know it again. Stored in clear, and no part of what is measured."""

from __future__ import annotations

from wpinq.errors import SessionError

LONGEST_LABEL = 200
"""Characters of a label: a line, and no place for data."""


def check_label(label: object) -> str:
    """A label as it is kept, "" for none; SessionError when it is no text, or too long."""
    if label is None:
        return ""
    if not isinstance(label, str) or len(label) > LONGEST_LABEL:
        raise SessionError(
            f'a label is text of at most {LONGEST_LABEL} characters, such as label="degrees for the report"; it is '
            "kept in clear in the ledger, so do not write it from the data"
        )
    return label


def escaped(text: str) -> str:
    """A text that anybody may have written, for a terminal: what does not print is shown as Python escapes it.

    Control characters, ANSI sequences, line breaks, and marks that turn the direction of writing: none gets through.
    HTML has to be escaped besides, by whoever writes HTML.

    Examples
    --------
    >>> print(escaped("report\\x1b[2K of May"))
    report\\x1b[2K of May
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
