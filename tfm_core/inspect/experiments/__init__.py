"""Experiments that teach: one thing changed, what to expect of it, and what it showed."""

from tfm_core.inspect.experiments.attention import ATTENTION
from tfm_core.inspect.experiments.demonstration import Demonstrations
from tfm_core.inspect.experiments.order import ORDER
from tfm_core.inspect.experiments.residuals import RESIDUALS
from tfm_core.inspect.experiments.training import TRAINING

DEMONSTRATIONS = Demonstrations(
    {one.name: one for one in (*ORDER, *ATTENTION, *RESIDUALS, *TRAINING)}
)
