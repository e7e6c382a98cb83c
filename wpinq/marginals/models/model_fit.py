"""From noisy marginals to a joint model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wpinq.errors import AnswersError
from wpinq.inference.checks import count_of, is_one_of, sequence_of
from wpinq.marginals.attributes import Attributes
from wpinq.marginals.measured_views import MeasuredView, View
from wpinq.marginals.models.fit_target import FitTarget
from wpinq.marginals.models.full_table import check_table, fit_full_table
from wpinq.marginals.models.joint_model import JointModel
from wpinq.marginals.models.mixture import fit_mixture
from wpinq.marginals.models.tree_model import Forest, fit_tree

_STEPS = {"mixture": 1000, "tree": 400, "full table": 1000}
_COMPONENTS, _MEMBERS = 50, 4


def check_model(model: str, attributes: Attributes, views: Sequence[View]) -> None:
    """Refuse, before anything is measured, a model that cannot be fitted to these views of a table.

    Examples
    --------
    >>> check_model("tree", Attributes((2, 2, 2)), [(0, 1), (1, 2)])
    """
    if not is_one_of(model, _STEPS):
        raise AnswersError(f"a model is one of {', '.join(map(repr, _STEPS))}, not {model!r}")
    if model == "tree":
        Forest.of(attributes, views)
    elif model == "full table":
        check_table(attributes)


def fit(
    views: Sequence[MeasuredView],
    attributes: Any,
    model: str = "mixture",
    *,
    stop: float | None = None,
    steps: int | None = None,
    components: int | None = None,
    members: int | None = None,
    seed: int = 0,
) -> JointModel:
    """A distribution over all records whose marginals are close to noisy ones: non-negative, and one with another.

    It minimises `½ Σ_a ‖m_a − y_a‖² / (2 b_a²)` over the distributions of a model, from the product of the fitted
    single marginals on, and stops before it follows the noise.

    Parameters
    ----------
    views : sequence of MeasuredView
        Noisy marginals y_a, with Laplace noise of scale b_a.
    attributes : Attributes, sizes, or dict from names to sizes
        The attributes of the table.
    model : str
        "mixture", of products: any number of attributes, any views. "tree": views of at most two attributes whose
        pairs close no circle. "full table": at most 2²⁰ cells; slow, and what the others are held to.
    stop : float, optional
        The loss to stop at, over what is expected of the truth: more than 0. When left out, `stopping_ratio`.
    steps : int, optional
        The most steps: 1000, of a tree 400.
    components, members : int, optional
        Of a mixture: how many products each of its members has, and how many members, each from its own random start,
        are put together as one mixture: 50 and 4.
    seed : int
        Of a mixture's random starts; the others have none. The same seed gives the same model.

    Raises
    ------
    AnswersError
        When views, or options, do not fit the model.

    Notes
    -----
    No privacy cost: it reads released numbers only. Time and error are in `docs/joint_models.md`.

    Examples
    --------
    >>> import numpy as np
    >>> pair = MeasuredView((0, 1), np.array([[60.0, -2.0], [1.0, 41.0]]), scale=1.0)
    >>> found = fit([pair], {"a": 2, "b": 2}, "full table")
    >>> bool(found.marginal(("a", "b")).min() >= 0), found.marginal("a").sum().round()
    (True, np.float64(100.0))
    """
    given = sequence_of(views, "measured views")
    if not all(isinstance(each, MeasuredView) for each in given):
        raise AnswersError("measured views are MeasuredView(view, counts, scale): read them off a strategy's answers")
    table = Attributes.of(attributes)
    check_model(model, table, [each.view for each in given])
    if model != "mixture" and (components, members) != (None, None):
        raise AnswersError(f"components and members are of mixtures, a {model} has none: leave them out")
    most = count_of(_STEPS[model] if steps is None else steps, "the steps of a fit", 1)
    target = FitTarget.of(given, table, stop)
    found: JointModel
    if model == "tree":
        found = fit_tree(target, most)
    elif model == "full table":
        found = fit_full_table(target, most)
    else:
        found = fit_mixture(
            target,
            count_of(_COMPONENTS if components is None else components, "the components of a mixture", 1, 2**16),
            count_of(_MEMBERS if members is None else members, "the members of a mixture", 1, 2**10),
            most,
            count_of(seed, "a seed", 0),
        )
    found.options = {"model": model, "stop": stop, "steps": steps, "components": components, "members": members}
    return found
