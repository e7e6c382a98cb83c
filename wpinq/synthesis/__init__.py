"""Markov chain Monte Carlo over public candidates, scored against answers."""

from wpinq.synthesis.candidate import Dataset
from wpinq.synthesis.chain import Chain, GenericChain
from wpinq.synthesis.chain_trace import Trace
from wpinq.synthesis.checkpoint import Checkpoint, CheckpointError
from wpinq.synthesis.convergence import split_r_hat
from wpinq.synthesis.sampling import Samples, Update, sample
from wpinq.synthesis.schedule import ConstantSchedule, GeometricSchedule, LinearSchedule, Schedule
from wpinq.synthesis.settings import MOST_STEPS, STEPS_AN_EDGE, Settings
from wpinq.synthesis.target import Target, noise_level
from wpinq.synthesis.walks import EdgeMoves, ReplaceRecord, Swaps, Walk

__all__ = [
    "MOST_STEPS",
    "STEPS_AN_EDGE",
    "Chain",
    "Checkpoint",
    "CheckpointError",
    "ConstantSchedule",
    "Dataset",
    "EdgeMoves",
    "GenericChain",
    "GeometricSchedule",
    "LinearSchedule",
    "ReplaceRecord",
    "Samples",
    "Schedule",
    "Settings",
    "Swaps",
    "Target",
    "Trace",
    "Update",
    "Walk",
    "noise_level",
    "sample",
    "split_r_hat",
]
