"""The head of an opened model: a classifier of texts, or the guess at hidden words.

Both are BERT's (Devlin et al. 2019, sections 4.1 and 3.1); GPT-2 is classified by its last token
(Radford et al. 2018, section 3.2). A head lies in a file of the run's folder, beside the model that
pages look into, and answers from what that model makes of a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from torch.nn.functional import layer_norm, linear

from tfm_core.choices.config import EncoderOnlyConfig, ModelConfig
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.record import resolve
from tfm_core.pretrained.settings import Settings
from tfm_core.reading import Unreadable, open_tensors
from tfm_core.sentences import Paragraph, StudentError

FILE = "head.safetensors"
_WORDS = {
    "dense.weight": "cls.predictions.transform.dense.weight",
    "dense.bias": "cls.predictions.transform.dense.bias",
    "norm.weight": "cls.predictions.transform.LayerNorm.weight",
    "norm.bias": "cls.predictions.transform.LayerNorm.bias",
    "words.bias": "cls.predictions.bias",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor of a head: its name in the folder, without the base, and its shape."""

    name: str
    shape: tuple[int, ...]


def head_of(settings: Settings, names: Set[str], *, n_words: int, width: int) -> dict[str, Part]:
    """Return the tensors of a head by our names; none where there is no such head.

    names: of the tensors in the folder.
    """
    kind, n_labels = settings.text("problem_type"), settings.labels()
    if n_labels > 1 and kind in (None, "single_label_classification"):
        if "score.weight" in names:
            return {"labels.weight": Part("score.weight", (n_labels, width))}
        if {"classifier.weight", "pooler.dense.weight"} <= names:
            return {
                "labels.weight": Part("classifier.weight", (n_labels, width)),
                "labels.bias": Part("classifier.bias", (n_labels,)),
            }
    if "cls.predictions.transform.dense.weight" not in names:
        return {}
    shapes = {"dense.weight": (width, width), "words.bias": (n_words,)}
    parts = {ours: Part(name, shapes.get(ours, (width,))) for ours, name in _WORDS.items()}
    if not settings.boolean("tie_word_embeddings", True):
        parts["words.weight"] = Part("cls.predictions.decoder.weight", (n_words, width))
    return parts


def read_head(folder: Path) -> Mapping[str, Tensor]:
    """Return the tensors of a head in a run's folder. Raises StudentError where they are gone."""
    try:
        with open_tensors(folder / FILE, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (FileNotFoundError, Unreadable):
        raise StudentError(Paragraph("pretrained/no-head")) from None


def logits_of(head: Mapping[str, Tensor], x: Tensor, table: Tensor, model: ModelConfig) -> Tensor:
    """Return the scores of labels or words for vectors x (..., d_model).

    table: of the embeddings, whose rows stand for the words where a head has no rows of its own.
    model: says the activation and the epsilon. Raises KeyError and RuntimeError for another head.
    """
    if "labels.weight" in head:
        return linear(x, head["labels.weight"], head.get("labels.bias"))
    assert isinstance(model, EncoderOnlyConfig)
    bend = resolve(ACTIVATIONS[model.activation].function)
    x = bend(linear(x, head["dense.weight"], head["dense.bias"]))
    x = layer_norm(x, x.shape[-1:], head["norm.weight"], head["norm.bias"], model.norm_eps)
    return linear(x, head.get("words.weight", table), head["words.bias"])
