"""Models that were trained elsewhere, as tasks: opened, recorded, or trained further here.

Where nothing is learned, a task is in no list of what a family can learn. A configuration holds
what a model must know of its words; the tokenizer lies in the run's folder under its digest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tfm_core.choices.config.base import Choice, Config, CrossError, OneOf, set_fact, setting
from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig, CorpusTaskFacts
from tfm_core.choices.config.image_tasks import (
    BETWEEN,
    ImageTaskConfig,
    ImageTaskFacts,
    is_class_name,
)
from tfm_core.choices.config.model import ModelConfig, built
from tfm_core.choices.config.reads import NamedTaskConfig, task_setting
from tfm_core.choices.config.text_tasks import MAX_WORDS, set_id
from tfm_core.sentences import N_, Paragraph, words

MAX_TOKENS = 512
"""Of a text that is read at once."""
MAX_ANSWER = 64
"""Tokens of an answer that a model writes."""
MAX_NAME = 60
MAX_CLASSES = 30_000
_MAX_ROWS = 1_000_000
ARCHITECTURES = {"gpt2": "GPT-2", "llama": "Llama", "bert": "BERT", "vit": "ViT", "t5": "T5"}
"""What each ``model_type`` is called."""
_HELP = N_("Trained elsewhere, opened from a folder.")


WITHOUT_HEAD = N_("Opened without its head ({parts}), so its answers are not shown.")


class OpenedConfig(Config):
    """What is known of a model that was opened. left_out: its heads that are not here."""

    called: str = set_fact(N_("Name"), default="model", max_length=MAX_NAME)
    architecture: str = set_fact(N_("Architecture"), default="", max_length=20)
    left_out: str = set_fact(N_("Left out"), default="", max_length=1000)
    is_trained_here: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """What its architecture is called."""
        return ARCHITECTURES.get(self.architecture, N_("Pretrained model"))


class OpenedWordsConfig(OpenedConfig):
    """What is known of its words. Ids of tokens are -1 for those that it lacks."""

    tokenizer: str = set_fact(N_("Tokenizer"), default="", pattern=r"^([0-9a-f]{20})?$")
    n_words: int = set_fact(N_("Vocabulary"), default=5, ge=1, le=_MAX_ROWS)
    pad_id: int = set_fact(N_("Padding"), default=-1, ge=-1, le=_MAX_ROWS)
    bos_id: int = set_fact(N_("Start token"), default=-1, ge=-1, le=_MAX_ROWS)
    eos_id: int = set_fact(N_("End token"), default=-1, ge=-1, le=_MAX_ROWS)
    unk_id: int = set_fact(N_("Unknown"), default=-1, ge=-1, le=_MAX_ROWS)
    bos: str = set_fact(N_("Start token"), default="", max_length=100)
    eos: str = set_fact(N_("End token"), default="", max_length=100)

    @property
    def begin(self) -> str:
        """The token that what is written begins with."""
        return self.bos or "<bos>"

    @property
    def end(self) -> str:
        """The token that what is written ends with."""
        return self.eos or "<eos>"


class LabelledConfig(Config):
    """A model whose head may name a text. labels: the names, with a mark between them."""

    labels: str = set_fact(N_("Classes"), default="", max_length=100_000)

    @property
    def label_names(self) -> tuple[str, ...]:
        """What its head can call a text; none where it has no such head."""
        return tuple(self.labels.split(BETWEEN)) if self.labels else ()


_WRITER = CorpusTaskFacts(N_("Pretrained model"), _HELP, (), Paragraph("settings/unseen-opened"))


class PretrainedTextConfig(LabelledConfig, OpenedWordsConfig, CorpusTaskConfig):
    """A language model. What it is measured on is chapter 1 of Alice in Wonderland."""

    tasks: ClassVar[dict[str, CorpusTaskFacts]] = {"pretrained": _WRITER}
    kind: Literal["pretrained"] = "pretrained"  # type: ignore[assignment]
    name: Literal["pretrained"] = task_setting("pretrained")
    unit: Literal["bpe"] = set_fact(N_("Tokens"), default="bpe")

    @property
    def facts(self) -> CorpusTaskFacts:
        """Label and help of this model."""
        return CorpusTaskFacts(self.label, _HELP, (), _WRITER.unseen)


@dataclass(frozen=True, slots=True)
class OpenedFacts:
    """Label and help of a model of words that comes from elsewhere."""

    label: str
    families: tuple[str, ...]
    answer: Literal["vectors", "sequence", "label"]
    help: str = _HELP
    unseen: str = Paragraph("settings/unseen-opened")


class PretrainedReaderConfig(LabelledConfig, OpenedWordsConfig, NamedTaskConfig):
    """An encoder that makes vectors of a text.

    mask_id: the token whose word its head guesses, -1 for none.
    """

    tasks: ClassVar[dict[str, OpenedFacts]] = {
        "pretrained-reader": OpenedFacts(N_("Pretrained model"), ("encoder-only",), "vectors")
    }
    kind: Literal["pretrained-reader"] = "pretrained-reader"
    name: Literal["pretrained-reader"] = task_setting("pretrained-reader")
    context: int = set_fact(N_("Longest text"), default=16, ge=2, le=MAX_TOKENS)
    head: Literal["pooler", "states"] = set_fact(N_("Answer"), default="states")
    n_segments: int = set_fact(N_("Segments"), default=1, ge=0, le=64)
    mask_id: int = set_fact(N_("Mask token"), default=-1, ge=-1, le=_MAX_ROWS)

    @property
    def without_data(self) -> str:
        """Why no data can be loaded."""
        return Paragraph("pretrained/no-data")

    @property
    def facts(self) -> OpenedFacts:
        """Label and help of this model."""
        return replace(self.tasks[self.name], label=self.label)

    @property
    def max_src_len(self) -> int:
        """Longest text in tokens, with those that the tokenizer puts around it."""
        return self.context


class PretrainedAnswererConfig(OpenedWordsConfig, NamedTaskConfig):
    """An encoder and a decoder that answer a text with another one."""

    tasks: ClassVar[dict[str, OpenedFacts]] = {
        "pretrained-answerer": OpenedFacts(N_("Pretrained model"), ("encoder-decoder",), "sequence")
    }
    kind: Literal["pretrained-answerer"] = "pretrained-answerer"
    name: Literal["pretrained-answerer"] = task_setting("pretrained-answerer")
    context: int = set_fact(N_("Longest text"), default=16, ge=2, le=MAX_TOKENS)
    longest: int = set_fact(N_("Longest answer"), default=MAX_ANSWER, ge=1, le=MAX_TOKENS)

    @property
    def without_data(self) -> str:
        """Why no data can be loaded."""
        return Paragraph("pretrained/no-answers")

    @property
    def facts(self) -> OpenedFacts:
        """Label and help of this model."""
        return replace(self.tasks[self.name], label=self.label)

    @property
    def max_src_len(self) -> int:
        """Longest text in tokens, with those that the tokenizer puts around it."""
        return self.context

    @property
    def max_tgt_len(self) -> int:
        """Longest answer in tokens."""
        return self.longest


Share = Annotated[float, Field(ge=-1e3, le=1e3, allow_inf_nan=False)]
Deviation = Annotated[float, Field(ge=1e-6, le=1e3, allow_inf_nan=False)]
_HALF = (0.5, 0.5, 0.5)


class PretrainedPicturesConfig(OpenedConfig, ImageTaskConfig):
    """A classifier of pictures. mean, std: of each channel, of pixels from 0 to 1."""

    tasks: ClassVar[dict[str, ImageTaskFacts]] = {
        "pretrained-pictures": ImageTaskFacts(
            N_("Pretrained model"),
            _HELP,
            224,
            3,
            ("0", "1"),
            0,
            0,
            ground="any",
            unseen=Paragraph("settings/unseen-opened"),
        )
    }
    kind: Literal["pretrained-pictures"] = "pretrained-pictures"  # type: ignore[assignment]
    name: Literal["pretrained-pictures"] = task_setting("pretrained-pictures")
    side: int = set_fact(N_("Pixels per side"), default=224, ge=1, le=4096)
    is_coloured: bool = set_fact(N_("In colour"), default=True)
    classes: str = set_fact(N_("Classes"), default=BETWEEN.join("01"), max_length=2_000_000)
    mean: tuple[Share, ...] = set_fact(N_("Mean of the pixels"), default=_HALF)
    std: tuple[Deviation, ...] = set_fact(N_("Standard deviation of the pixels"), default=_HALF)

    @property
    def without_data(self) -> str:
        """Why no data can be loaded."""
        return Paragraph("pretrained/no-pictures")

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this model."""
        return _picture_facts(self)

    @model_validator(mode="after")
    def _leaves_pictures(self) -> Self:
        """Check the classes and the channels; no pictures are learned from."""
        names = self.classes.split(BETWEEN)
        if not 1 <= len(names) <= MAX_CLASSES or not all(map(is_class_name, names)):
            raise CrossError(
                "classes", "A model has 1 to {most:,} classes, each with a name.", most=MAX_CLASSES
            )
        if {len(self.mean), len(self.std)} != {3 if self.is_coloured else 1}:
            raise CrossError("mean", "Each channel needs a mean and a standard deviation.")
        return self


@lru_cache(maxsize=64)
def _picture_facts(config: PretrainedPicturesConfig) -> ImageTaskFacts:
    usual = config.tasks[config.name]
    return replace(
        usual,
        label=config.label,
        image_size=config.side,
        channels=3 if config.is_coloured else 1,
        class_names=tuple(config.classes.split(BETWEEN)),
    )


class ForeignTaskConfig(NamedTaskConfig):
    """The maps of a model that is not here: of a training by its own program, or of one look.

    src_len, tgt_len: 0 tokens of what it does not have. bos: the first token of what a decoder
    reads, where the examples lack it, as those of older looks do. n_left_out: maps of other shapes.
    unseen: what a look could not see, a sentence a line.
    """

    is_trained_here: ClassVar[bool] = False
    data_kind: ClassVar[Literal["none"]] = "none"
    tasks: ClassVar[dict[str, OpenedFacts]] = {
        "foreign": OpenedFacts(
            N_("PyTorch model"),
            ("foreign",),
            "vectors",
            N_("Trained by your own program."),
            N_("As measured by your program."),
        ),
        "look": OpenedFacts(
            N_("Recorded forward pass"),
            ("foreign",),
            "vectors",
            N_("One forward pass of any PyTorch model, recorded by tfm_core.look."),
        ),
    }
    kind: Literal["foreign"] = "foreign"
    name: Literal["foreign", "look"] = task_setting("foreign")
    src_len: int = set_fact(N_("Longest source"), default=0, ge=0, le=_MAX_ROWS)
    tgt_len: int = set_fact(N_("Longest target"), default=0, ge=0, le=_MAX_ROWS)
    bos: str = set_fact(N_("Start token"), default="", max_length=100)
    n_left_out: int = set_fact(N_("Maps of other shapes"), default=0, ge=0, le=10_000)
    unseen: str = set_fact(N_("Not recorded"), default="", max_length=100_000)

    @property
    def without_data(self) -> str:
        """Why nothing can be asked of the model."""
        is_look = self.name == "look"
        return Paragraph("pretrained/look") if is_look else Paragraph("pretrained/foreign")

    @property
    def begin(self) -> str:
        """The first token of what a decoder reads, where the examples lack it."""
        return self.bos

    @property
    def facts(self) -> OpenedFacts:
        """Label and help."""
        return self.tasks[self.name]

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens."""
        return self.src_len

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens."""
        return self.tgt_len


TRAINS: dict[str, Choice] = {
    name: Choice(**words(f"choices/settings/trains.{name}")) for name in ("all", "last", "lora")
}
"""What of a model is trained."""
MAX_RANK = 4096


class TunedConfig(OpenedWordsConfig):
    """A model that is trained further: from which weights, and which part.

    base: the digest of the first weights; without one they are random. Weights and tokenizer lie
    in the run's folder. LoRA: alpha / rank is what its change is multiplied by.
    """

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
                "Choose at most {n_layers}: the model has no more layers.",
                n_last=self.n_last,
                n_layers=n_layers,
            )
        if self.trains != "all" and not self.base:
            raise CrossError("task.trains", N_("Random weights must all be trained."))


_TUNED_WRITER = CorpusTaskFacts(settings=("context", "text"), **words("choices/tasks/tuned-text"))
_TUNED_LABELLER = OpenedFacts(
    families=("encoder-only",), answer="label", **words("choices/tasks/tuned-labels")
)


class TunedTextConfig(TunedConfig, PretrainedTextConfig):
    """An opened language model that learns to continue a text, cut by its own tokenizer."""

    tasks: ClassVar[dict[str, CorpusTaskFacts]] = {"tuned-text": _TUNED_WRITER}
    kind: Literal["tuned-text"] = "tuned-text"  # type: ignore[assignment]
    name: Literal["tuned-text"] = task_setting("tuned-text")  # type: ignore[assignment]

    @property
    def facts(self) -> CorpusTaskFacts:
        """Label and help of this model."""
        return _TUNED_WRITER


class TunedLabelsConfig(TunedConfig, NamedTaskConfig):
    """An opened encoder that learns to label sentences, cut by its own tokenizer."""

    tasks: ClassVar[dict[str, OpenedFacts]] = {"tuned-labels": _TUNED_LABELLER}
    kind: Literal["tuned-labels"] = "tuned-labels"
    name: Literal["tuned-labels"] = task_setting("tuned-labels")
    data: str = set_id("")
    context: int = set_fact(N_("Longest sentence"), default=16, ge=1, le=MAX_TOKENS)
    n_tgt: int = set_fact(N_("Target vocabulary"), default=6, ge=5, le=MAX_WORDS)
    n_segments: int = set_fact(N_("Segments"), default=1, ge=0, le=64)

    @property
    def facts(self) -> OpenedFacts:
        """Label and help of this model."""
        return _TUNED_LABELLER

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
