"""Experiments that teach: one thing changed, what to expect of it, and what it showed."""

from tfm_core.inspect.experiments.catalogue import ATTENTION, ORDER, RESIDUALS, TRAINING
from tfm_core.inspect.experiments.demonstration import Demonstrations

DEMONSTRATIONS = Demonstrations(
    {one.name: one for one in (*ORDER, *ATTENTION, *RESIDUALS, *TRAINING)}
)
