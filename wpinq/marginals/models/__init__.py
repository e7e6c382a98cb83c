"""Joint models of a whole table, fitted to noisy marginals."""

from wpinq.marginals.models.joint_model import FullTable as FullTable
from wpinq.marginals.models.joint_model import JointModel as JointModel
from wpinq.marginals.models.model_fit import MarginalIntervals as MarginalIntervals
from wpinq.marginals.models.model_fit import MixtureModel as MixtureModel
from wpinq.marginals.models.model_fit import fit as fit
from wpinq.marginals.models.model_fit import marginal_intervals as marginal_intervals
