"""Models that were trained elsewhere, as tasks: what they read and write, and their tokens.

Nothing is learned, so these tasks are in no list of what a family can learn. A configuration holds
what a model must know of its words; the tokenizer lies in the run's folder under its digest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tfm_core.config.base import Config, CrossError, set_fact
from tfm_core.config.corpus_tasks import CorpusTaskConfig, CorpusTaskFacts
from tfm_core.config.image_tasks import ImageTaskConfig, ImageTaskFacts
from tfm_core.config.own_pictures import BETWEEN, is_class_name
from tfm_core.config.reads import SequenceTaskConfig, task_setting
from tfm_core.sentences import N_, Paragraph

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


WITHOUT_HEAD = N_("Opened without its head ({parts}): what that answers is not shown.")


class OpenedConfig(Config):
    """What is known of a model that was opened. left_out: its heads that are not here."""

    called: str = set_fact(N_("Name"), default="model", max_length=MAX_NAME)
    architecture: str = set_fact(N_("Architecture"), default="", max_length=20)
    left_out: str = set_fact(N_("Left out"), default="", max_length=1000)

    @property
    def is_opened(self) -> bool:
        """Whether the model was trained elsewhere, so that there is no training to look at."""
        return True

    @property
    def label(self) -> str:
        """What its architecture is called."""
        return ARCHITECTURES.get(self.architecture, N_("Pretrained model"))


class OpenedWordsConfig(OpenedConfig):
    """What is known of its words. Ids of tokens are -1 for those that it lacks."""

    tokenizer: str = set_fact(N_("Tokenizer"), default="", pattern=r"^([0-9a-f]{20})?$")
    n_words: int = set_fact(N_("Vocabulary"), default=5, ge=1, le=_MAX_ROWS)
    pad_id: int = set_fact(N_("Padding"), default=-1, ge=-1, le=_MAX_ROWS)
    bos_id: int = set_fact(N_("Begins a text"), default=-1, ge=-1, le=_MAX_ROWS)
    eos_id: int = set_fact(N_("Ends a text"), default=-1, ge=-1, le=_MAX_ROWS)
    unk_id: int = set_fact(N_("Unknown"), default=-1, ge=-1, le=_MAX_ROWS)
    bos: str = set_fact(N_("Begins a text"), default="", max_length=100)
    eos: str = set_fact(N_("Ends a text"), default="", max_length=100)

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
    name: Literal["pretrained"] = task_setting("pretrained")  # type: ignore[assignment]
    unit: Literal["bpe"] = set_fact(N_("Tokens"), default="bpe")

    @property
    def facts(self) -> CorpusTaskFacts:
        """Label and help of this model."""
        return CorpusTaskFacts(self.label, _HELP, (), _WRITER.unseen)


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """Label and help of an encoder without a head: it answers with vectors, not with words."""

    label: str
    help: str = _HELP
    unseen: str = Paragraph("settings/unseen-opened")
    families: tuple[str, ...] = ("encoder-only",)
    answer: Literal["vectors"] = "vectors"


class PretrainedReaderConfig(LabelledConfig, OpenedWordsConfig, SequenceTaskConfig):
    """An encoder that makes vectors of a text.

    mask_id: the token whose word its head guesses, -1 for none.
    """

    tasks: ClassVar[dict[str, ReaderFacts]] = {
        "pretrained-reader": ReaderFacts(N_("Pretrained model"))
    }
    without_data = Paragraph("pretrained/no-data")
    kind: Literal["pretrained-reader"] = "pretrained-reader"
    name: Literal["pretrained-reader"] = task_setting("pretrained-reader")
    context: int = set_fact(N_("Longest text"), default=16, ge=2, le=MAX_TOKENS)
    head: Literal["pooler", "states"] = set_fact(N_("Answer"), default="states")
    n_segments: int = set_fact(N_("Segments"), default=1, ge=0, le=64)
    mask_id: int = set_fact(N_("Hidden word"), default=-1, ge=-1, le=_MAX_ROWS)

    @property
    def facts(self) -> ReaderFacts:
        """Label and help of this model."""
        return ReaderFacts(self.label)

    @property
    def max_src_len(self) -> int:
        """Longest text in tokens, with those that the tokenizer puts around it."""
        return self.context

    @property
    def max_tgt_len(self) -> int:
        """Nothing is written."""
        return 0

    @property
    def n_answers(self) -> int:
        """The first position alone is asked for, as by BERT's pooler."""
        return 1


@dataclass(frozen=True, slots=True)
class AnswererFacts:
    """Label and help of a model that answers a text with another one."""

    label: str
    help: str = _HELP
    unseen: str = Paragraph("settings/unseen-opened")
    families: tuple[str, ...] = ("encoder-decoder",)
    answer: Literal["sequence"] = "sequence"


class PretrainedAnswererConfig(OpenedWordsConfig, SequenceTaskConfig):
    """An encoder and a decoder that answer a text with another one."""

    tasks: ClassVar[dict[str, AnswererFacts]] = {
        "pretrained-answerer": AnswererFacts(N_("Pretrained model"))
    }
    without_data = Paragraph("pretrained/no-answers")
    kind: Literal["pretrained-answerer"] = "pretrained-answerer"
    name: Literal["pretrained-answerer"] = task_setting("pretrained-answerer")
    context: int = set_fact(N_("Longest text"), default=16, ge=2, le=MAX_TOKENS)
    longest: int = set_fact(N_("Longest answer"), default=MAX_ANSWER, ge=1, le=MAX_TOKENS)

    @property
    def facts(self) -> AnswererFacts:
        """Label and help of this model."""
        return AnswererFacts(self.label)

    @property
    def max_src_len(self) -> int:
        """Longest text in tokens, with those that the tokenizer puts around it."""
        return self.context

    @property
    def max_tgt_len(self) -> int:
        """Longest answer in tokens."""
        return self.longest

    @property
    def n_answers(self) -> int:
        """The tokens of an answer, and that at its end."""
        return self.longest + 1


Share = Annotated[float, Field(ge=-1e3, le=1e3, allow_inf_nan=False)]
Deviation = Annotated[float, Field(ge=1e-6, le=1e3, allow_inf_nan=False)]
_HALF = (0.5, 0.5, 0.5)


class PretrainedPicturesConfig(OpenedConfig, ImageTaskConfig):
    """A classifier of pictures. mean, std: of each channel, of pixels from 0 to 1."""

    tasks: ClassVar[dict[str, ImageTaskFacts]] = {
        "pretrained-pictures": ImageTaskFacts(
            N_("Pretrained model"), _HELP, 224, 3, ("0", "1"), 0, 0, ground="any",
            unseen=Paragraph("settings/unseen-opened"),
        )
    }  # fmt: skip
    without_data = Paragraph("pretrained/no-pictures")
    kind: Literal["pretrained-pictures"] = "pretrained-pictures"  # type: ignore[assignment]
    name: Literal["pretrained-pictures"] = task_setting("pretrained-pictures")  # type: ignore[assignment]
    side: int = set_fact(N_("Pixels to a side"), default=224, ge=1, le=4096)
    is_coloured: bool = set_fact(N_("In colour"), default=True)
    classes: str = set_fact(N_("Classes"), default=BETWEEN.join("01"), max_length=2_000_000)
    mean: tuple[Share, ...] = set_fact(N_("Mean of the pixels"), default=_HALF)
    std: tuple[Deviation, ...] = set_fact(N_("Deviation of the pixels"), default=_HALF)

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
                "classes",
                "A model has 1 to {most:,} classes, each with a name.", most=MAX_CLASSES,
            )  # fmt: skip
        if {len(self.mean), len(self.std)} != {3 if self.is_coloured else 1}:
            raise CrossError("mean", "Each channel has a mean and a deviation.")
        return self


@lru_cache(maxsize=64)
def _picture_facts(config: PretrainedPicturesConfig) -> ImageTaskFacts:
    usual = config.tasks[config.name]
    return replace(
        usual, label=config.label, image_size=config.side, channels=3 if config.is_coloured else 1,
        class_names=tuple(config.classes.split(BETWEEN)),
    )  # fmt: skip


_LOOK_HELP = N_("One forward pass of any PyTorch model, recorded by tfm_core.look.")


@dataclass(frozen=True, slots=True)
class LookFacts:
    """Label and help of a look, and how its maps are laid out."""

    families: tuple[str, ...]
    answer: Literal["vectors", "text", "sequence"]
    label: str = N_("A look")
    help: str = _LOOK_HELP
    unseen: str = Paragraph("settings/unseen-opened")


_LOOKS = {
    "tokens": LookFacts(("encoder-only",), "vectors"),
    "text": LookFacts(("decoder-only",), "text"),
    "pair": LookFacts(("encoder-decoder",), "sequence"),
}
"""By what is read: tokens that see each other, a text that sees its past, a source and a target."""


class LookConfig(OpenedWordsConfig, SequenceTaskConfig):
    """The maps of a model that is not here: its class, its size, and the lengths of what it read.

    The configuration of the model says the layers and heads of the maps, and nothing else of it.
    modules: the names of the modules whose maps are shown, a line each, stack by stack. unseen:
    what the look could not see, a sentence a line.
    """

    tasks: ClassVar[dict[str, LookFacts]] = {
        "look": LookFacts(("encoder-only", "decoder-only", "encoder-decoder"), "vectors")
    }
    data_kind = "none"
    without_data = Paragraph("pretrained/maps-alone")
    kind: Literal["look"] = "look"
    name: Literal["look"] = task_setting("look")
    reads: Literal["tokens", "text", "pair"] = set_fact(N_("Reads"), default="tokens")
    n_parameters: int = set_fact(N_("Parameters"), default=0, ge=0, le=10**13)
    src_len: int = set_fact(N_("Longest source"), default=1, ge=0, le=_MAX_ROWS)
    tgt_len: int = set_fact(N_("Longest target"), default=0, ge=0, le=_MAX_ROWS)
    modules: str = set_fact(N_("Modules"), default="", max_length=100_000)
    n_left_out: int = set_fact(N_("Maps of other shapes"), default=0, ge=0, le=10_000)
    unseen: str = set_fact(N_("Not seen"), default="", max_length=100_000)

    @property
    def has_model(self) -> bool:
        """There are maps alone."""
        return False

    @property
    def facts(self) -> LookFacts:
        """Label and help of a look."""
        return _LOOKS[self.reads]

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens."""
        return self.src_len

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without the first."""
        return self.tgt_len

    @property
    def n_answers(self) -> int:
        """Nothing is answered here."""
        return 1
