"""Two inputs of one length, and the first place at which a run's model answers them differently.

torch is imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.probe.items import is_language
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.knockouts.patching import Answers, Inputs
    from tfm_core.models.build import Model

MAX_TOKENS = 64
"""Each token of a text is patched before each layer."""
_SAME = N_("The model answers both inputs alike; change another word.")


class AnswersAlike(StudentError):
    """The model answers two inputs alike, so nothing decides between the answers."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoInputs:
    """Two inputs and their answers. item: of the first, with what is written before the answer."""

    clean: Inputs
    changed: Inputs
    answers: Answers
    words: tuple[str, str]
    written: str
    item: Mapping[str, Any]


def of_texts(run: Run, model: Model, text: str, changed: str) -> TwoInputs:
    """Return two texts up to the first place at which the answers differ. Raises StudentError."""
    import torch

    from tfm_core.inspect.knockouts.patching import Answers
    from tfm_core.models.text import EncoderOnly

    task = task_of(run)
    tokens, others = tokens_of(task, text), tokens_of(task, changed)
    if len(others) != len(tokens):
        raise StudentError(
            "The changed input has {n} tokens; it needs {expected}, as the first.",
            n=len(others),
            expected=len(tokens),
        )
    is_text = run.experiment.task.facts.answer == "text"
    words = task.tgt_vocabulary
    begin = words.specials.bos

    def inputs(read: Sequence[str], written: Sequence[int]) -> Inputs:
        if is_text:
            return torch.empty(1, 0, dtype=torch.int64), torch.tensor(
                [[begin, *words.encode(read), *written]]
            )
        return torch.tensor([task.src_vocabulary.encode(read)]), torch.tensor([[begin, *written]])

    if isinstance(model, EncoderOnly):
        n_answers = run.experiment.task.n_answers
        slots = [begin] * (n_answers - 1 if model.pool is None else 0)
        pair = inputs(tokens, slots), inputs(others, slots)
        position, ids = _first_place(model, *pair)
        is_sequence = run.experiment.task.facts.answer == "sequence"
        shown = {"src": tokens, "tgt": ("",) * (n_answers - 1) if is_sequence else ()}
        before = ""
    else:
        never = list(words.specials.unwritten)
        found = _first_token(model, lambda ids: (inputs(tokens, ids), inputs(others, ids)), never)
        pair, ids, said = found
        position = -1
        written = tuple(words.decode(list(said)))
        shown = {"src": () if is_text else tokens, "tgt": (*(tokens if is_text else ()), *written)}
        before = task.join_tgt(written)
    answers = words.token(ids[0]), words.token(ids[1])
    return TwoInputs(*pair, Answers(position, *ids), answers, before, shown)


def of_pictures(run: Run, model: Model, index: int, other_index: int) -> TwoInputs:
    """Return two of the run's pictures, in the same way. Raises StudentError."""
    import torch

    from tfm_core.choices.config import CaptionTaskConfig
    from tfm_core.data.caption_words import join, vocabulary
    from tfm_core.inspect.knockouts.patching import Answers
    from tfm_core.models.pictures import VisionTransformer

    experiment = run.experiment
    probe = run.probe()
    assert probe.images is not None
    item = probe.items[index]
    pictures = probe.images[index], probe.images[other_index]
    clean, other = (inputs_of(run, item, picture)[:1] for picture in pictures)
    if isinstance(model, VisionTransformer):
        with torch.inference_mode():
            first, second = (int(model(*images)[0].argmax()) for images in (clean, other))
        if first == second:
            raise AnswersAlike(N_("The model answers both pictures alike; choose another one."))
        names = experiment.task.class_names
        shown: dict[str, tuple[str, ...]] = {"src": (), "tgt": ()}
        words = str(names[first]), str(names[second])
        return TwoInputs(clean, other, Answers(None, first, second), words, "", shown)
    config = experiment.task_as(CaptionTaskConfig)
    known = vocabulary(config)
    begin = known.specials.bos

    def inputs(ids: Sequence[int]) -> tuple[Inputs, Inputs]:
        written = torch.tensor([[begin, *ids]])
        return (*clean, written), (*other, written)

    pair, ids, said = _first_token(model, inputs, [])
    written = tuple(known.decode(list(said)))
    words = known.token(ids[0]), known.token(ids[1])
    shown = {"src": item["src"], "tgt": written}
    return TwoInputs(*pair, Answers(-1, *ids), words, join(written, config), shown)


def _first_place(model: Any, clean: Inputs, changed: Inputs) -> tuple[int, tuple[int, int]]:
    """Return the first position that is answered differently, and both answers."""
    import torch

    with torch.inference_mode():
        first, second = (model(*inputs)[0].argmax(-1) for inputs in (clean, changed))
    places = first != second
    if model.mask_id:  # what is not hidden is no answer
        hidden = clean[0][0] == model.mask_id
        places = places[: len(hidden)] & hidden[: len(places)]
    if not places.any():
        raise AnswersAlike(_SAME)
    at = int(places.nonzero()[0, 0])
    return at, (int(first[at]), int(second[at]))


def _first_token(
    model: Any,
    inputs: Callable[[Sequence[int]], tuple[Inputs, Inputs]],
    never: list[int],
) -> tuple[tuple[Inputs, Inputs], tuple[int, int], Sequence[int]]:
    """Write both answers greedily until they differ: the inputs then, both ids, what is written."""
    import torch

    written: list[int] = []
    for _ in range(MAX_TOKENS):
        pair = inputs(written)
        with torch.no_grad():
            rows = [model(*each)[0, -1] for each in pair]
        for row in rows:
            row[never] = -torch.inf
        first, second = (int(row.argmax()) for row in rows)
        if first != second:
            return pair, (first, second), written
        if first == model.eos_id:
            break
        written.append(first)
    raise AnswersAlike(_SAME)


def positions_of(run: Run, two: TwoInputs) -> dict[str, tuple[str, ...]]:
    """Return the names of the positions of each stack."""
    names: dict[str, tuple[str, ...]] = {}
    for modules in modules_by_kind(run.experiment).values():
        stack = modules[0].split(".")[0]
        if modules[0].endswith("self_attention"):
            names[stack] = axes(run.experiment, two.item, modules[0]).query
    return names


def task_of(run: Run) -> TextTask:
    """Return the task of a run that reads texts."""
    from tfm_core.data.tasks import text_task

    return text_task(run.experiment.task)


def tokens_of(task: TextTask, text: str) -> tuple[str, ...]:
    """Return the tokens of a text. Raises StudentError for more than MAX_TOKENS."""
    tokens = task.tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise StudentError(
            "The text has {n} tokens; at most {most} are patched.", n=len(tokens), most=MAX_TOKENS
        )
    return tokens


def tokens_read(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tokens that a model reads before it answers."""
    return tuple(item["tgt"][: item["prompt"]] if is_language(item) else item["src"])
