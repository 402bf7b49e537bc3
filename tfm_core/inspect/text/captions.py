"""A composed picture through the last checkpoint: the caption and where the model looks.

torch is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tfm_core.choices.config import CaptionerConfig, CaptionTaskConfig
from tfm_core.data.caption_words import CANVAS, PlacedDigit, are_disjoint, caption
from tfm_core.inspect.attention.example import Example, captured
from tfm_core.inspect.attention.maps import MEAN, head_map
from tfm_core.inspect.attention.trained import data_of, inputs_of, model_of_step
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.tables import table
from tfm_core.probe.items import caption_item
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Array
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError


def digit_scores(look: CaptionReading, layer: int, head: int = MEAN) -> pd.DataFrame:
    """Return one row for each word that names a digit in the picture.

    word; share: of the attention of the head, or MEAN, inside its box; best: of the best head;
    layer and head: that head, from 1.
    """
    rows = []
    for word in look.words:
        if (shares := word["share"]) is not None:
            at = np.unravel_index(int(shares.argmax()), shares.shape)
            share = float(head_map(shares, layer, head))
            rows.append((word["text"], share, shares.max(), *(n + 1 for n in at)))
    return table(rows, word=object, share=float, best=float, layer=int, head=int)


N_LIKELY = 4
_NO_CAPTIONER = N_("This run does not describe pictures. Choose one that does.")


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A digit to compose with: what it shows, its pixels uint8 (28, 28), and its place."""

    placed: PlacedDigit
    pixels: Array


@dataclass(frozen=True, slots=True, eq=False)
class CaptionReading:
    """The caption of a picture.

    words: <eos> last, if written; each its text; likely, the likeliest words here with their
    probabilities, the written one first; box of the digit that it truly names; share (L, H) of each
    head's attention inside that box, or None. maps: (L, H, T, side, side), cross-attention over
    patches. even: the share of even attention inside the boxes, mean over words with one.
    """

    example: Example
    words: tuple[Mapping[str, Any], ...]
    maps: Array
    even: float | None

    @property
    def is_right(self) -> bool:
        """Whether every word is the true one, and no other follows."""
        item = self.example.item
        return tuple(item["tgt"]) == tuple(item.get("truth", ())) and not item.get("goes_on")


def preview(pieces: Sequence[Piece]) -> tuple[Array, frozenset[int]]:
    """Return the picture as composed so far, uint8 (1, size, size), and digits that overlap."""
    overlapping = {
        i
        for i, piece in enumerate(pieces)
        for j, other in enumerate(pieces)
        if i != j and not are_disjoint(piece.placed, other.placed)
    }
    return _composed(pieces)[0], frozenset(overlapping)


def compose_pieces(pieces: Sequence[Piece]) -> tuple[Array, list[list[int]]]:
    """Return the picture uint8 (1, size, size) and the box of each digit's ink.

    Raises StudentError for digits that overlap or leave the picture.
    """
    for i, piece in enumerate(pieces):
        place = piece.placed
        if min(place.left, place.top) < 0 or max(place.right, place.bottom) > CANVAS:
            raise StudentError(
                "Digit {i} lies outside the {canvas} × {canvas} picture. Move it inside.",
                i=i + 1,
                canvas=CANVAS,
            )
        for j, other in enumerate(pieces[:i]):
            if not are_disjoint(place, other.placed):
                raise StudentError(Paragraph("text/overlap", j=j + 1, i=i + 1))
    return _composed(pieces)


def _composed(pieces: Sequence[Piece]) -> tuple[Array, list[list[int]]]:
    import torch

    from tfm_core.data.captions import compose, ink_boxes

    digits = torch.from_numpy(np.stack([piece.pixels for piece in pieces]))[None]
    squares = torch.tensor([[[p.placed.left, p.placed.top, p.placed.side] for p in pieces]])
    return compose(digits, squares)[0].numpy(), ink_boxes(digits, squares)[0].tolist()


def swap_places(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the digits with the places of the first two exchanged."""
    one, other = pieces[0].placed, pieces[1].placed
    return [
        Piece(replace(one, left=other.left, top=other.top, side=other.side), pieces[0].pixels),
        Piece(replace(other, left=one.left, top=one.top, side=one.side), pieces[1].pixels),
        *pieces[2:],
    ]


def look_at_scene(run: Run, pieces: Sequence[Piece], step: int | None = None) -> CaptionReading:
    """Let the model describe a composed picture; see ``look_at_picture``. Raises ValueError."""
    config = run.experiment.task_as(CaptionTaskConfig, _NO_CAPTIONER)
    patch_size = run.experiment.model_as(CaptionerConfig).patch_size
    if len(pieces) != config.n_digits:
        raise StudentError(
            "This model was trained on pictures of {n_digits} digits; this one has {n_pieces}.",
            n_digits=config.n_digits,
            n_pieces=len(pieces),
        )
    picture, boxes = compose_pieces(pieces)
    truth = caption([piece.placed for piece in pieces], config)
    item = caption_item(config, truth, boxes, patch_size)
    return look_at_picture(run, picture, item, step)


def look_at_picture(
    run: Run, picture: Array, truth: Mapping[str, Any], step: int | None = None
) -> CaptionReading:
    """Let the model describe a picture uint8 (1, size, size), reading its own words.

    truth: its item, as in a probe. step: of the weights; None is the last checkpoint. Raises
    StudentError for another task or no checkpoint.
    """
    from tfm_core.data.caption_words import join, longest
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as
    from tfm_core.data.vocabulary import EOS
    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import Captioner
    from tfm_core.probe.capture import capture

    config = run.experiment.task_as(CaptionTaskConfig, _NO_CAPTIONER)
    model, step = model_of_step(run, step)
    data = data_as(data_of(run.experiment), CaptionData)
    assert isinstance(model, Captioner)
    images, _tgt = inputs_of(run, {"tgt": ()}, picture)
    written = greedy(model, images, max_len=data.train.tgt.size(1) - 1)
    whole = tuple(data.vocabulary.decode(written.ids[0].tolist()))
    answer = whole[: longest(config)]
    item = written_item(answer, truth, join(answer, config))
    item["goes_on"] = len(whole) > len(answer)
    inputs = inputs_of(run, item, picture)
    with capture(model, only={"weights", "mask"}) as cache:
        probabilities = model(*inputs)[0].float().softmax(-1).numpy()  # (T + 1, vocabulary)
    example = Example(
        step=step,
        **captured(run.experiment, item, cache),
        picture=picture,
        answer=answer,
        answer_text=item["said"],
        confidence=written.confidence[0, : len(answer)].numpy(),
    )
    n_words = len(answer) + int((written.ids[0] == EOS).any())
    names = [data.vocabulary.token(i) for i in range(len(data.vocabulary))]
    return _reading(run, example, probabilities[:n_words], names)


def look_at_unseen(run: Run, row: int) -> CaptionReading:
    """Let the model describe a picture of its test set. Raises ValueError, in a sentence."""
    import torch

    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as
    from tfm_core.probe.items import caption_items

    model = run.experiment.model_as(CaptionerConfig, _NO_CAPTIONER)
    data = data_as(data_of(run.experiment), CaptionData)
    (item,) = caption_items(data.config, data.test, [row], model.patch_size)
    picture = data.test.pictures(torch.tensor([row]))[0].numpy()
    return look_at_picture(run, picture, item)


def written_item(answer: Sequence[str], truth: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the item of the words that a model wrote, beside the true ones.

    A word gets the box of the digit that the truth names with the same word, in order.
    """
    left: dict[str, list[int]] = {}
    for index, (word, box) in enumerate(zip(truth["tgt"], truth["boxes"], strict=True)):
        if box is not None:
            left.setdefault(word, []).append(index)
    indices = [left[word].pop(0) if left.get(word) else None for word in answer]
    return {
        "src": truth["src"],
        "tgt": list(answer),
        "said": text,
        "truth": list(truth["tgt"]),
        "tgt_text": truth["tgt_text"],
        "boxes": [None if index is None else truth["boxes"][index] for index in indices],
        "alignment": [[] if index is None else truth["alignment"][index] for index in indices],
    }


def _reading(
    run: Run, example: Example, probabilities: Array, names: Sequence[str]
) -> CaptionReading:
    modules = modules_by_kind(run.experiment)["picture"]
    weights = example.maps(modules)[:, :, : len(probabilities)]  # (L, H, T, patches)
    side = round(weights.shape[-1] ** 0.5)
    ends = [*example.item["tgt"], "<eos>"][: len(probabilities)]
    boxes = [*example.item["boxes"], None]
    patches = [*example.item["alignment"], []]
    words, even = [], []
    for index, (text, row) in enumerate(zip(ends, probabilities, strict=True)):
        share = None
        if patches[index]:
            share = weights[:, :, index, patches[index]].sum(-1)
            even.append(len(patches[index]) / weights.shape[-1])
        best = np.argsort(-row)[:N_LIKELY]
        likely = tuple((names[i], float(row[i])) for i in best)
        words.append({"text": text, "likely": likely, "box": boxes[index], "share": share})
    return CaptionReading(
        example,
        tuple(words),
        weights.reshape(*weights.shape[:3], side, side),
        float(np.mean(even)) if even else None,
    )


def unseen_digits(run: Run, number: int) -> Array:
    """Return the handwritings of a number that the run never trained on: uint8 (D, 28, 28)."""
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as

    data = data_as(data_of(run.experiment), CaptionData)
    digits = data.test.digits
    return np.asarray(digits.images[digits.labels == number, 0].numpy())


def unseen_scene(run: Run, row: int) -> list[tuple[PlacedDigit, int]]:
    """Return a scene of the test pictures, counted around, and the handwriting of each digit."""
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as

    data = data_as(data_of(run.experiment), CaptionData)
    split, row = data.test, row % len(data.test)
    composed = []
    for placed, digit in zip(split.scene(row), split.chosen[row].tolist(), strict=True):
        same = split.digits.labels[:digit] == placed.number
        composed.append((placed, int(same.sum())))
    return composed


def about_swap(now: CaptionReading, swapped: CaptionReading) -> Question | None:
    """Ask what the model writes once the first two digits change places; None if no two differ."""
    answer = swapped.example.answer_text
    now_text, truth = now.example.answer_text, swapped.example.item["tgt_text"]
    wrong = {
        now_text: N_("That is what the model writes now."),
        now.example.item["tgt_text"]: N_("That describes the picture as it is now."),
        truth: N_("That would be right, but the model makes a mistake here."),
    }
    offered = {option for option in (answer, *wrong) if option}
    if len(offered) < 2 or not answer:
        return None
    return choice_question(
        N_("Swap the first two digits. What does the model write?"),
        answer,
        {option: why for option, why in wrong.items() if option},
        N_("The patches it reads for each word have changed places, too."),
    )


def about_patches(read: CaptionReading) -> Question:
    """Ask among how many patches a head divides its attention for each word."""
    side, across = read.maps.shape[-1], read.example.picture
    assert across is not None
    pixels = across.shape[-1]
    patch = pixels // side
    return number_question(
        N_(
            "Patches are {patch} × {patch} pixels, the picture {pixels} × {pixels}. "
            "How many keys does each word attend to?",
            patch=patch,
            pixels=pixels,
        ),
        side * side,
        N_("One key per patch: ({pixels} / {patch})².", pixels=pixels, patch=patch),
        wrong={
            pixels * pixels: N_("The encoder cut the pixels into patches first."),
            patch * patch: N_("That is the number of pixels in a patch."),
            side: N_("That is one row of patches."),
            len(read.words): N_("That is the number of words, and each word is a query."),
        },
        hint=N_("Count the patches of the picture."),
    )
