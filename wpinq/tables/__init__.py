"""Tables by name: groups and aggregates of their records, and synthetic rows."""

from typing import TYPE_CHECKING

from wpinq.runtime.public import public_names

if TYPE_CHECKING:
    from wpinq import synthesis as _synthesis  # the floor above, for the list of names alone: loaded when it is used
    from wpinq.synthesis import SyntheticTable as SyntheticTable

    synthesize = _synthesis.synthesize_table

_LATER = {"SyntheticTable": "wpinq.synthesis.SyntheticTable", "synthesize": "wpinq.synthesis.synthesize_table"}
public_names(globals(), _LATER)
