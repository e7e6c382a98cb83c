"""Markov chain Monte Carlo over public candidates, scored against answers."""

from wpinq.mcmc.chain import Chain as Chain
from wpinq.mcmc.chain import GenericChain as GenericChain
from wpinq.mcmc.proposal import Dataset as Dataset
from wpinq.mcmc.proposal import EdgeMoves as EdgeMoves
from wpinq.mcmc.proposal import ReplaceRecord as ReplaceRecord
from wpinq.mcmc.proposal import Swaps as Swaps
from wpinq.mcmc.proposal import Walk as Walk
from wpinq.mcmc.run import Samples as Samples
from wpinq.mcmc.run import Update as Update
from wpinq.mcmc.run import sample as sample
from wpinq.mcmc.settings import MOST_STEPS as MOST_STEPS
from wpinq.mcmc.settings import STEPS_PER_EDGE as STEPS_PER_EDGE
from wpinq.mcmc.settings import Checkpoint as Checkpoint
from wpinq.mcmc.settings import CheckpointError as CheckpointError
from wpinq.mcmc.settings import Settings as Settings
from wpinq.mcmc.settings import Trace as Trace
from wpinq.mcmc.target import Prior as Prior
from wpinq.mcmc.target import Target as Target
from wpinq.mcmc.target import noise_level as noise_level
