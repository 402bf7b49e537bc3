"""A model of somebody else's code, as settings: what is known of it and of what it reads.

No part of it is built here. Its modules stand under the names that models of the app have, so that
maps, statistics and figures need no other way: ``encoder.layers.0.self_attention`` is the first
attention that sees all positions, ``decoder.layers.0.self_attention`` the first causal one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tfm_core.config.family import FamilyConfig
from tfm_core.config.own_tasks import set_fact
from tfm_core.config.reads import SequenceTaskConfig, task_setting
from tfm_core.sentences import N_

MAX_TOKENS = 2048
"""Of an example whose maps are kept."""
MAX_NAME = 200
MAX_LAYERS = 999
FOREIGN = "foreign"
LABEL = N_("PyTorch model")
_Names = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=MAX_NAME)], ...],
    Field(max_length=MAX_LAYERS),
]


class ForeignModelConfig(FamilyConfig):
    """What is known of a model: its class, its size, and the names of its attention modules.

    both: modules whose queries see all positions, in the order of the forward pass; past: those
    that see no later one; cross: those whose keys are of another sequence.
    """

    has_blocks: ClassVar[bool] = False
    family: Literal["foreign"] = "foreign"
    class_name: str = set_fact(N_("Class"), default="Module", min_length=1, max_length=MAX_NAME)
    n_parameters: int = set_fact(N_("Parameters"), default=0, ge=0, le=10**15)
    n_heads: int = set_fact(N_("Heads"), default=1, ge=1, le=4096)
    both: _Names = set_fact(N_("Self-attention"), default=())
    past: _Names = set_fact(N_("Causal self-attention"), default=())
    cross: _Names = set_fact(N_("Cross-attention"), default=())

    @property
    def modules(self) -> dict[str, str]:
        """The module of each attention: its name here -> its name in the model."""
        stacks = {
            "encoder.layers.{}.self_attention": self.both,
            "decoder.layers.{}.self_attention": self.past,
            "decoder.layers.{}.cross_attention": self.cross,
        }
        return {
            here.format(layer): name
            for here, names in stacks.items()
            for layer, name in enumerate(names)
        }


@dataclass(frozen=True, slots=True)
class ForeignFacts:
    """Label and help of what such a model learns, which nobody here knows."""

    label: str = LABEL
    help: str = N_("Trained in a program of your own.")
    unseen: str = N_("As your program measured it.")
    families: tuple[str, ...] = (FOREIGN,)
    answer: Literal["vectors"] = "vectors"


class ForeignTaskConfig(SequenceTaskConfig):
    """What such a model reads and writes; 0 tokens where it does not."""

    tasks: ClassVar[dict[str, ForeignFacts]] = {FOREIGN: ForeignFacts()}
    kind: Literal["foreign"] = "foreign"
    name: Literal["foreign"] = task_setting("foreign")
    src_len: int = set_fact(N_("Longest source"), default=0, ge=0, le=MAX_TOKENS)
    tgt_len: int = set_fact(N_("Longest target"), default=0, ge=0, le=MAX_TOKENS)

    @property
    def is_opened(self) -> bool:
        """Return True: nothing here trains it."""
        return True

    @property
    def has_model(self) -> bool:
        """There are curves and maps alone."""
        return False

    @property
    def is_foreign(self) -> bool:
        """Return True: nothing here can build it."""
        return True

    @property
    def facts(self) -> ForeignFacts:
        """Label and help."""
        return self.tasks[FOREIGN]

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens."""
        return self.src_len

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens."""
        return self.tgt_len

    @property
    def n_answers(self) -> int:
        """As many as it writes."""
        return max(1, self.tgt_len)
