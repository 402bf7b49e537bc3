"""What a run's file carries besides its model, and the shell command that asks it.

Where a model is used elsewhere, its texts are cut into tokens and joined again as
``TextTask.tokenize`` and ``join_tgt`` do, and this is tested against them.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tfm_core.choices.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    ForeignTaskConfig,
    ImageTaskConfig,
    OpenedConfig,
    OwnTextTaskConfig,
    TextTaskConfig,
)
from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.tasks import LANGUAGES
from tfm_core.data import caption_words
from tfm_core.data.tasks import corpus_task, text_task
from tfm_core.data.text import generated
from tfm_core.data.text.task import Pair, Spelling, TextTask
from tfm_core.data.user_data.sets import SetMissing
from tfm_core.data.user_data.task import user_task
from tfm_core.data.user_data.tokens import LABEL, Cutter
from tfm_core.data.vocabulary import SPECIALS, Vocabulary
from tfm_core.inspect.attention.trained import data_of
from tfm_core.probe.items import PROMPT
from tfm_core.sentences import Paragraph, StudentError


@dataclass(frozen=True, slots=True)
class Carried:
    """What a file carries; what a task has not is empty.

    mean and std: of pixels from 0 to 1, one a channel. src and tgt: tokens in the order of their
    ids, the special ones first. n_read: most tokens that the model reads of a running text, <bos>
    included; n_written: most tokens that it writes, <eos> included. example: a text to try, ""
    for pictures. verb: what the method is called that answers. tries_capitals: an unknown word is
    looked up in other capitals; reads_unknown: what is unknown then, too, is read as <unk>.
    """

    verb: str
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    src: tuple[str, ...] = ()
    tgt: tuple[str, ...] = ()
    spelling: Spelling | None = None
    n_read: int = 0
    n_written: int = 0
    example: str = ""
    tries_capitals: bool = False
    reads_unknown: bool = False

    @property
    def argument(self) -> str:
        """The name of what the method takes."""
        return "picture" if self.mean else "prompt" if self.verb == "write" else "sentence"


VERBS = {"label": "label", "blanks": "fill", "sequence": "answer"}


def carried(experiment: Experiment) -> Carried:
    """Return what the file of a run carries.

    Raises ValueError, in a sentence, for pictures that cannot be had: their mean is not known then.
    """
    match experiment.task:
        case ForeignTaskConfig() as task:
            raise StudentError(task.without_data)
        case OpenedConfig():
            raise StudentError(Paragraph("pretrained/no-file"))
        case CorpusTaskConfig() as task:
            return _of_corpus(task)
        case OwnTextTaskConfig() as task:  # its words may be unknown
            return replace(_of_pairs(task), tries_capitals=True, reads_unknown=True)
        case TextTaskConfig() as task:
            made = _of_pairs(task)
            return replace(made, verb="translate") if task.name == "english-korean" else made
        case CaptionTaskConfig() as task:
            return _of_captions(task, *_statistics(experiment))
        case ImageTaskConfig() as task:
            mean, std = _statistics(experiment)
            return Carried("classify", mean, std, classes=task.facts.class_names)


def _of_captions(
    task: CaptionTaskConfig, mean: tuple[float, ...], std: tuple[float, ...]
) -> Carried:
    return Carried(
        "describe",
        mean,
        std,
        tgt=_tokens(caption_words.vocabulary(task)),
        spelling=spelling_of(task),
        n_written=caption_words.longest(task) + 1,
    )


def _of_corpus(task: CorpusTaskConfig) -> Carried:
    texts = text_task(task)
    prompt = texts.join_tgt(_example(texts).tgt[: PROMPT[task.unit]])
    return Carried(
        "write",
        src=_tokens(texts.src_vocabulary),
        tgt=_tokens(texts.tgt_vocabulary),
        spelling=spelling_of(task),
        n_read=task.max_tgt_len + 1,
        example=prompt.strip().partition("\n")[0],
        tries_capitals=True,
        reads_unknown=task.name != "grammar" and bool(task.data or task.text),
    )


def _of_pairs(task: TextTaskConfig | OwnTextTaskConfig) -> Carried:
    texts = text_task(task)
    return Carried(
        VERBS[task.facts.answer],
        src=_tokens(texts.src_vocabulary),
        tgt=_tokens(texts.tgt_vocabulary),
        spelling=spelling_of(task),
        n_written=task.max_tgt_len + 1,
        example=texts.join_src(_example(texts).src),
    )


def _example(task: TextTask) -> Pair:
    """Return a pair to try; where the examples of a run are gone, a few words it knows."""
    try:
        return task.sample(random.Random(1))
    except SetMissing:
        words = task.src_vocabulary.tokens[:3]
        return Pair(words, words, ((),) * len(words))


def _tokens(vocabulary: Vocabulary) -> tuple[str, ...]:
    return (*SPECIALS, *vocabulary.tokens)


def _statistics(experiment: Experiment) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of the pixels that the run trained on."""
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.image_data import ImageData

    data = data_of(experiment)
    assert isinstance(data, ImageData | CaptionData)
    mean, std = (tuple(round(x, 6) for x in one.tolist()) for one in (data.mean, data.std))
    return mean, std


_OWN_CUTS = {"words": "running", "spaces": "spaces", "characters": "signs", "bpe": "pieces"}
_OWN_JOINS = {
    "words": "running",
    "spaces": "spaced",
    "characters": "plain",
    "bpe": "united",
    LABEL: "spaced",
}


def _corpus_spelling(task: CorpusTaskConfig) -> Spelling:
    if task.unit == "characters":
        return Spelling("letters", "plain")
    if task.unit == "bpe":
        return Spelling("parts", "plain", merges=_merges(corpus_task(task).cutter))
    if corpus_task(task).generator is not None:
        return Spelling("spaces", "spaced")
    is_text = task.name != "grammar"
    return Spelling("running" if is_text else "words", "running", has_breaks=is_text)


def _own_spelling(task: OwnTextTaskConfig) -> Spelling:
    src, tgt = user_task(task).cutters
    return Spelling(_OWN_CUTS[src.unit], _OWN_JOINS[tgt.unit], merges=_merges(src))


def _merges(cutter: Cutter) -> tuple[str, ...]:
    return tuple(" ".join(pair) for pair in cutter.merges)


_BY_KIND: dict[str, Callable[[Any], Spelling]] = {
    "text": lambda task: generated(task).spelling,
    "caption": lambda task: Spelling(
        "", "suffixed", suffixes=tuple(sorted(resolve(LANGUAGES[task.language].grammar).joined))
    ),
    "corpus": _corpus_spelling,
    "own": _own_spelling,
}


def spelling_of(
    task: TextTaskConfig | CorpusTaskConfig | CaptionTaskConfig | OwnTextTaskConfig,
) -> Spelling:
    """Return how the texts of a task are cut and joined; captions are only joined."""
    return _BY_KIND[task.kind](task)


PLACEHOLDER = "your text"
"""Stands for an example that cannot be quoted alike in sh, PowerShell and cmd."""

_BARE = re.compile(r"[\w./:+][\w./:+-]*")
_SPECIAL = re.compile(r"[\"“”„$`\\!%\x00-\x1f\x7f-\x9f]|[^\S ]|\A-|\A\Z")
"""What a shell reads inside double quotes, or argparse as an option; PowerShell ends a text at
typographic quotes, too, and cmd expands ``%NAME%``."""


def command(data: Carried, checkpoint: str) -> str:
    """Return the command that asks a file with these data about its example.

    checkpoint: the path of the weights, a name of the app or of this computer.
    """
    argument = "picture.png" if data.mean else _text(data.example)
    return f"python model.py --checkpoint {_path(checkpoint)} {argument}"


def _text(text: str) -> str:
    """Return a text of the data as one argument that every shell reads the same way."""
    if _BARE.fullmatch(text):
        return text
    return f'"{PLACEHOLDER if _SPECIAL.search(text) else text}"'


def _path(path: str) -> str:
    """Return a path as one argument: in double quotes, which every shell knows, if possible."""
    if _BARE.fullmatch(path):
        return path
    return shlex.quote(path) if _SPECIAL.search(path) else f'"{path}"'
