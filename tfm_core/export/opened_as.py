"""What a checked Hugging Face folder opens as: the configuration of a run, and its tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfm_core.choices.config import (
    ConfigError,
    Experiment,
    OpenedConfig,
    PretrainedAnswererConfig,
    PretrainedPicturesConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
)
from tfm_core.choices.config.image_tasks import BETWEEN
from tfm_core.choices.config.pretrained_tasks import MAX_NAME, MAX_TOKENS
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.data.opened_folder import OpenedTokenizer, Unopenable, read_tokenizer
from tfm_core.data.vocabulary import NONE
from tfm_core.facts.storage import attention_numbers
from tfm_core.pretrained.model import CheckedFolder
from tfm_core.pretrained.pictures import Pixels, class_names, pixels_of
from tfm_core.pretrained.settings import Settings
from tfm_core.sentences import Paragraph, in_bytes

MASK = "[MASK]"
"""What BERT's tokenizers call a hidden word."""
MAX_ATTENTION = 400_000_000
"""Attention weights of one example that are looked at: 1.6 GB."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The configuration of the run. tokenizer: None where pictures are read."""

    experiment: Experiment
    tokenizer: OpenedTokenizer | None = None


def configuration_of(checked: CheckedFolder, called: str) -> Opened:
    """Return what a folder opens as. called: the run's name. Raises Unopenable."""
    make = _MAKERS[checked.config.family]
    try:
        return make(checked, called)
    except ConfigError as error:
        raise Unopenable("This folder cannot be opened: {why}", why=error.sentence) from None


def notes_of(checked: CheckedFolder) -> tuple[str, ...]:
    """Return what differs from the folder, in sentences. Raises Unopenable."""
    note = _pixels(checked).note if isinstance(checked.shape, ImageShape) else None
    return (*checked.notes, *([note] if note else []))


def _made(checked: CheckedFolder, task: OpenedConfig) -> Experiment:
    values = {"model": checked.config.model_dump(), "task": task.model_dump()}
    return Experiment.parse(values)


def _facts(checked: CheckedFolder, called: str) -> dict[str, Any]:
    return {
        "called": called[:MAX_NAME],
        "architecture": checked.family.name,
        "left_out": checked.heads_left_out[:1000],
    }


# ---- pictures


def _pictures(checked: CheckedFolder, called: str) -> Opened:
    shape = checked.shape
    assert isinstance(shape, ImageShape)
    if shape.channels not in (1, 3):
        raise Unopenable(
            "This model reads pictures with {n} channels; the app supports 1 or 3.",
            n=shape.channels,
        )
    pixels = _pixels(checked)
    task = PretrainedPicturesConfig.parse(
        {
            **_facts(checked, called),
            "side": shape.image_size,
            "is_coloured": shape.channels == 3,
            "classes": BETWEEN.join(class_names(checked.folder.config, shape.n_classes)),
            "mean": pixels.mean,
            "std": pixels.std,
        }
    )
    experiment = _made(checked, task)
    numbers = attention_numbers(experiment)
    if numbers > MAX_ATTENTION:
        raise Unopenable(
            "The attention on one picture takes {size}; the limit is {most}.",
            size=in_bytes(4 * numbers),
            most=in_bytes(4 * MAX_ATTENTION),
        )
    return Opened(experiment)


def _pixels(checked: CheckedFolder) -> Pixels:
    shape = checked.shape
    assert isinstance(shape, ImageShape)
    return pixels_of(checked.folder.path, image_size=shape.image_size, channels=shape.channels)


# ---- texts


def _writer(checked: CheckedFolder, called: str) -> Opened:
    """Return a language model. Raises Unopenable without a token to start."""
    tokenizer, ids = _tokenizer(checked)
    begin = ids["bos"] if ids["bos"] != NONE else ids["eos"]
    if begin == NONE:
        raise Unopenable(Paragraph("pretrained/no-start"))
    task = PretrainedTextConfig.parse(
        {
            **_facts_of_tokens(checked, called, tokenizer, ids | {"bos": begin}),
            "labels": _labels(checked),
            "context": _longest(checked),
        }
    )
    return Opened(_made(checked, task), tokenizer)


def _reader(checked: CheckedFolder, called: str) -> Opened:
    shape, (tokenizer, ids) = checked.shape, _tokenizer(checked)
    assert isinstance(shape, TextShape)
    is_guessed = "words.bias" in checked.head and MASK in tokenizer.tokens
    mask = tokenizer.tokens.index(MASK) if is_guessed else NONE
    task = PretrainedReaderConfig.parse(
        {
            **_facts_of_tokens(checked, called, tokenizer, ids),
            "labels": _labels(checked),
            "mask_id": mask,
            "context": _longest(checked),
            "head": shape.head,
            "n_segments": shape.n_segments,
        }
    )
    return Opened(_made(checked, task), tokenizer)


def _answerer(checked: CheckedFolder, called: str) -> Opened:
    """Return an encoder-decoder. Raises Unopenable without tokens that begin and end an answer."""
    tokenizer, ids = _tokenizer(checked)
    settings = Settings(checked.folder.config)
    begin = settings.token("decoder_start_token_id", settings.token("pad_token_id"))
    n_words = len(tokenizer.tokens)
    if begin is None or begin >= n_words:
        raise Unopenable(Paragraph("pretrained/no-start"))
    if not 0 <= ids["eos"] < n_words:
        raise Unopenable(Paragraph("pretrained/no-end"))
    ids |= {"bos": begin, "pad": NONE if ids["pad"] == begin else ids["pad"]}
    task = PretrainedAnswererConfig.parse(
        {
            **_facts_of_tokens(checked, called, tokenizer, ids),
            "context": _longest(checked),
        }
    )
    return Opened(_made(checked, task), tokenizer)


def _labels(checked: CheckedFolder) -> str:
    """Return the names of the labels of a head, as a configuration has them; none without one."""
    if (weight := checked.head.get("labels.weight")) is None:
        return ""
    n_labels = checked.folder.tensors[weight].shape[0]
    return BETWEEN.join(class_names(checked.folder.config, n_labels))


def _longest(checked: CheckedFolder) -> int:
    return min(checked.config.n_positions or MAX_TOKENS, MAX_TOKENS)


def _tokenizer(checked: CheckedFolder) -> tuple[OpenedTokenizer, dict[str, int]]:
    """Return the tokenizer of a folder, and the ids of its special tokens by their name."""
    shape, settings = checked.shape, Settings(checked.folder.config)
    assert isinstance(shape, TextShape)
    n_words = shape.tgt_vocabulary
    tokenizer = read_tokenizer(checked.folder.path, n_words=n_words)

    def token(name: str) -> int:
        found = settings.token(name)
        return NONE if found is None or found >= n_words else found

    ids = {name: token(f"{name}_token_id") for name in ("pad", "bos", "eos")}
    ids["unk"] = NONE if tokenizer.unknown_id is None else tokenizer.unknown_id
    if shape.pad_id is not None:
        ids["pad"] = shape.pad_id
    return tokenizer, ids


def _facts_of_tokens(
    checked: CheckedFolder, called: str, tokenizer: OpenedTokenizer, ids: dict[str, int]
) -> dict[str, Any]:
    """Return the facts of a model of words: ids, and how two of its tokens are written."""
    shape, shown = checked.shape, tokenizer.shown()
    assert isinstance(shape, TextShape)
    found: dict[str, Any] = {f"{name}_id": number for name, number in ids.items()}
    for name in ("bos", "eos"):
        number = ids[name]
        found[name] = shown[number][:100] if 0 <= number < len(shown) else ""
    n_words = shape.tgt_vocabulary
    return _facts(checked, called) | {"tokenizer": tokenizer.digest, "n_words": n_words} | found


_MAKERS: Mapping[str, Callable[[CheckedFolder, str], Opened]] = {
    "decoder-only": _writer,
    "encoder-only": _reader,
    "encoder-decoder": _answerer,
    "vit": _pictures,
}
"""What makes a run of a model, by our family."""
