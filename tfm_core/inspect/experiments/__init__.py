"""Experiments that teach: one thing changed, what to expect of it, and what it showed."""

from tfm_core.inspect.experiments.catalogue import BY_THEME
from tfm_core.inspect.experiments.demonstration import Demonstrations

DEMONSTRATIONS = Demonstrations({one.name: one for theme in BY_THEME.values() for one in theme})
