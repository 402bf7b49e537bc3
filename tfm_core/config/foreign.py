"""What somebody else's model reads and writes, as settings; see ``model.ForeignModelConfig``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tfm_core.config.base import set_fact
from tfm_core.config.reads import SequenceTaskConfig, task_setting
from tfm_core.sentences import N_, Paragraph

MAX_TOKENS = 2048
"""Of an example whose maps are kept."""
FOREIGN = "foreign"
LABEL = N_("PyTorch model")


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

    data_kind = "none"
    without_data = Paragraph("pretrained/foreign")
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
