"""Markov chain Monte Carlo over public candidates, scored against answers."""

from wpinq.synthesis.candidate import Dataset as Dataset
from wpinq.synthesis.chain import Chain as Chain
from wpinq.synthesis.chain import GenericChain as GenericChain
from wpinq.synthesis.chain_trace import Trace as Trace
from wpinq.synthesis.checkpoint import Checkpoint as Checkpoint
from wpinq.synthesis.checkpoint import CheckpointError as CheckpointError
from wpinq.synthesis.convergence import split_r_hat as split_r_hat
from wpinq.synthesis.sampling import Samples as Samples
from wpinq.synthesis.sampling import Update as Update
from wpinq.synthesis.sampling import sample as sample
from wpinq.synthesis.schedule import ConstantSchedule as ConstantSchedule
from wpinq.synthesis.schedule import GeometricSchedule as GeometricSchedule
from wpinq.synthesis.schedule import LinearSchedule as LinearSchedule
from wpinq.synthesis.schedule import Schedule as Schedule
from wpinq.synthesis.settings import MOST_STEPS as MOST_STEPS
from wpinq.synthesis.settings import STEPS_AN_EDGE as STEPS_AN_EDGE
from wpinq.synthesis.settings import Settings as Settings
from wpinq.synthesis.target import Target as Target
from wpinq.synthesis.target import noise_level as noise_level
from wpinq.synthesis.walks import EdgeMoves as EdgeMoves
from wpinq.synthesis.walks import ReplaceRecord as ReplaceRecord
from wpinq.synthesis.walks import Swaps as Swaps
from wpinq.synthesis.walks import Walk as Walk
