"""Models that were trained elsewhere and are trained further here: from what, on what, which part.

A configuration names its first weights by their digest; without one they are random, as a training
from scratch has them. The weights and the tokenizer lie in the folder of the run.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from tfm_core.choices.config.base import Choice, CrossError, OneOf, set_fact, setting
from tfm_core.choices.config.corpus_tasks import CorpusTaskFacts
from tfm_core.choices.config.model import ModelConfig, built
from tfm_core.choices.config.own_tasks import MAX_WORDS, set_id
from tfm_core.choices.config.pretrained_tasks import (
    MAX_TOKENS,
    OpenedFacts,
    OpenedWordsConfig,
    PretrainedTextConfig,
)
from tfm_core.choices.config.reads import NamedTaskConfig, task_setting
from tfm_core.sentences import N_, words

TRAINS: dict[str, Choice] = {
    name: Choice(**words(f"choices/settings/trains.{name}")) for name in ("all", "last", "lora")
}
"""What of a model is trained."""
MAX_RANK = 4096


class TunedConfig(OpenedWordsConfig):
    """What is trained further. LoRA: alpha / rank is what its change is multiplied by."""

    is_trained_here: ClassVar[bool] = True
    base: str = set_fact(N_("First weights"), default="", pattern=r"^([0-9a-f]{20})?$")
    trains: Annotated[str, OneOf(TRAINS)] = setting("trains", "all")
    n_last: int = setting("n_last", 1, ge=1, le=1000)
    rank: int = setting("rank", 8, ge=1, le=MAX_RANK)
    alpha: float = setting("alpha", 16.0, gt=0, le=100_000)

    def check_model(self, model: ModelConfig) -> None:
        """Raise CrossError where no such part of a model can be trained."""
        if self.trains == "lora" and self.rank > built(model).d_model:
            raise CrossError(
                "task.rank",
                "The rank is {rank}; with d_model {d_model} it must be at most {d_model}.",
                rank=self.rank,
                d_model=built(model).d_model,
            )
        n_layers = int(getattr(model, "n_layers", 0))
        if self.trains == "last" and self.n_last > n_layers:
            raise CrossError(
                "task.n_last",
                "The model has only {n_layers} layers; choose at most that many.",
                n_last=self.n_last,
                n_layers=n_layers,
            )
        if self.trains != "all" and not self.base:
            raise CrossError("task.trains", N_("Random weights must all be trained."))


_WRITER = CorpusTaskFacts(settings=("context", "text"), **words("choices/tasks/tuned-text"))
_LABELLER = OpenedFacts(
    families=("encoder-only",), answer="label", **words("choices/tasks/tuned-labels")
)


class TunedTextConfig(TunedConfig, PretrainedTextConfig):
    """An opened language model that learns to continue a text, cut by its own tokenizer."""

    tasks: ClassVar[dict[str, CorpusTaskFacts]] = {"tuned-text": _WRITER}
    kind: Literal["tuned-text"] = "tuned-text"  # type: ignore[assignment]
    name: Literal["tuned-text"] = task_setting("tuned-text")  # type: ignore[assignment]

    @property
    def facts(self) -> CorpusTaskFacts:
        """Label and help of this model."""
        return _WRITER


class TunedLabelsConfig(TunedConfig, NamedTaskConfig):
    """An opened encoder that learns to label sentences, cut by its own tokenizer."""

    tasks: ClassVar[dict[str, OpenedFacts]] = {"tuned-labels": _LABELLER}
    kind: Literal["tuned-labels"] = "tuned-labels"
    name: Literal["tuned-labels"] = task_setting("tuned-labels")
    data: str = set_id("")
    context: int = set_fact(N_("Longest sentence"), default=16, ge=1, le=MAX_TOKENS)
    n_tgt: int = set_fact(N_("Target vocabulary"), default=6, ge=5, le=MAX_WORDS)
    n_segments: int = set_fact(N_("Segments"), default=1, ge=0, le=64)

    @property
    def facts(self) -> OpenedFacts:
        """Label and help of this model."""
        return _LABELLER

    @property
    def objective(self) -> str:
        """Answers need not follow from what is read."""
        return "own"

    @property
    def max_src_len(self) -> int:
        """Longest sentence in tokens, with those that the tokenizer puts around it."""
        return self.context

    @property
    def max_tgt_len(self) -> int:
        """A label."""
        return 1
