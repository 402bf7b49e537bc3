"""Open a Hugging Face folder as a run: weights, tokenizer, a probe and one snapshot.

The folder is untrusted. Everything is checked before the run appears; where something is wrong,
nothing of it stays. Weights are converted tensor by tensor, so that the model is in memory once.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tfm_core.config import (
    ConfigError,
    CorpusTaskConfig,
    DecoderOnlyConfig,
    EncoderOnlyConfig,
    Experiment,
    OpenedConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
)
from tfm_core.config.pretrained_tasks import MAX_NAME, MAX_TOKENS
from tfm_core.config.shape import TextShape
from tfm_core.data.corpus.task import corpus_task
from tfm_core.data.own import place
from tfm_core.data.shape import data_shape
from tfm_core.data.text.task import Pair
from tfm_core.data.vocabulary import NONE
from tfm_core.disk import sync_file
from tfm_core.export.exports import Progress
from tfm_core.inspect.attention.inputs import of_text
from tfm_core.inspect.attention.trained import model_of
from tfm_core.models.text import DecoderOnly
from tfm_core.pretrained.folder import CONFIG, MAX_BYTES, Unopenable
from tfm_core.pretrained.model import Checked, check_folder, parameters_of
from tfm_core.pretrained.settings import Settings
from tfm_core.pretrained.task import SENTENCES, reader, tokenizer_path
from tfm_core.pretrained.tokenizer import Words, read_words
from tfm_core.probe.capture import capture
from tfm_core.probe.items import continued, prompted_items
from tfm_core.probe.snapshot import half, positions_of
from tfm_core.probe.types import Array, Snapshot
from tfm_core.reading import is_line
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.record import snapshots
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_, Paragraph, Sentence, in_bytes, joined
from tfm_core.training.checkpoints import FILE, MODEL

_FACTS = {"step": 0, "seconds": 0.0, "scaler": {}}
"""Of a checkpoint that nothing here has trained."""

_MAX_LISTED, _MAX_FILES = 200, 1000


def open_run(
    path: Path,
    store: RunStore,
    *,
    name: str | None = None,
    owner: str | None = None,
    owner_name: str | None = None,
    most: int = MAX_BYTES,
    progress: Progress | None = None,
) -> Run:
    """Open a folder as a run of ``owner``. most: bytes of its weights.

    name: of the run; by default the folder's. Raises ValueError, in a sentence, with no run made.
    """
    say = progress or (lambda share, words: None)
    say(0.0, N_("Checking the folder"))
    called = name or path.expanduser().resolve().name
    checked = _known(check_folder(path, most=most))
    words = read_words(path, n_words=_n_words(checked))
    experiment = _experiment(checked, words, called)
    _check_room(checked, store)

    def fill(folder: Path) -> None:
        tokenizer = tokenizer_path(folder, words.digest)
        tokenizer.parent.mkdir(parents=True)
        write_bytes(tokenizer, words.content, lasting=True)
        target = folder / "checkpoints" / "last" / FILE
        target.parent.mkdir(parents=True)
        _write_weights(checked, target, lambda share: say(0.8 * share, N_("Reading the weights")))
        say(0.8, N_("Reading the first sentences"))
        run = Run(folder)
        items = _items(experiment)
        snapshots.write_probe(folder, {"kind": "text", "items": items})
        snapshots.write(folder, _snapshot(run, items))
        run.snapshot(0)

    with place.below(store.root):
        run = store.bring(
            experiment,
            Status("opened", total_steps=experiment.training.steps),
            fill,
            name=called,
            owner=owner,
            owner_name=owner_name,
        )
    say(1.0, N_("Done."))
    return run


def folders_in(root: Path) -> dict[str, Path]:
    """Return the folders that may be opened below a host's folder, by name. Never raises.

    A link counts as what it leads to: one that leads out of the host's folder is not listed.
    """
    try:
        whole, found = root.resolve(), sorted(root.iterdir())
    except OSError:
        return {}
    return {
        path.name: path
        for path in found[:_MAX_LISTED]
        if is_line(path.name, MAX_NAME) and (path / CONFIG).is_file() and _is_within(path, whole)
    }


def _is_within(path: Path, root: Path) -> bool:
    """Return whether a folder and all that it holds lie in another one, links followed."""
    try:
        return all(
            one.resolve().is_relative_to(root)
            for one in (path, *islice(path.iterdir(), _MAX_FILES))
        )
    except (OSError, RuntimeError):  # a link that leads to itself
        return False


def size_of(path: Path, *, most: int = MAX_BYTES) -> Sentence:
    """Return what a folder holds and how much it takes, with no weight loaded. Raises Unopenable.

    most: bytes of its weights.
    """
    checked = _known(check_folder(path, most=most))
    size = N_(
        "{label}, {n:,} parameters: {size} in memory, and as much on the disk.",
        label=checked.family.label,
        n=checked.n_parameters,
        size=in_bytes(checked.n_bytes),
    )
    return joined(size, *checked.notes)


def _known(checked: Checked) -> Checked:
    """Return a folder whose model pages can show. Raises Unopenable for another."""
    writes = isinstance(checked.config, DecoderOnlyConfig)
    if writes or (isinstance(checked.config, EncoderOnlyConfig) and not _classifies(checked)):
        return checked
    raise Unopenable(Paragraph("pretrained/no-pages", label=checked.family.label))


def _classifies(checked: Checked) -> bool:
    """Return whether a model answers each token with a class."""
    return isinstance(checked.shape, TextShape) and checked.shape.head == "tokens"


def _n_words(checked: Checked) -> int:
    assert isinstance(checked.shape, TextShape)
    return checked.shape.tgt_vocabulary


def _experiment(checked: Checked, words: Words, called: str) -> Experiment:
    """Return the configuration of the run. Raises Unopenable without a token to start."""
    settings, n_words = Settings(checked.folder.config), _n_words(checked)

    def token(name: str) -> int:
        found = settings.token(name)
        return NONE if found is None or found >= n_words else found

    shape = checked.shape
    assert isinstance(shape, TextShape)
    shown = words.shown()
    ids = {name: token(f"{name}_token_id") for name in ("pad", "bos", "eos")}
    ids["unk"] = NONE if words.unknown_id is None else words.unknown_id
    if shape.pad_id is not None:
        ids["pad"] = shape.pad_id
    facts: dict[str, Any] = {
        "called": called[:MAX_NAME],
        "architecture": checked.family.name,
        "tokenizer": words.digest,
        "n_words": n_words,
    }
    longest = min(checked.config.n_positions or MAX_TOKENS, MAX_TOKENS)
    task: OpenedConfig
    try:
        if isinstance(checked.config, DecoderOnlyConfig):
            begin = ids["bos"] if ids["bos"] != NONE else ids["eos"]
            if begin == NONE:
                raise Unopenable(Paragraph("pretrained/no-start"))
            ids |= {"bos": begin}
            task = PretrainedTextConfig.parse({
                **facts, **_named(ids, shown), "context": longest,
            })  # fmt: skip
        else:
            task = PretrainedReaderConfig.parse({
                **facts, **_named(ids, shown), "context": longest, "head": shape.head,
                "n_segments": shape.n_segments,
            })  # fmt: skip
        made = Experiment.parse({"model": checked.config.model_dump(), "task": task.model_dump()})
    except ConfigError as error:
        raise Unopenable("This folder cannot be opened: {why}", why=error.sentence) from None
    found = data_shape(made)
    assert isinstance(found, TextShape)
    if replace(found, bos_id=shape.bos_id, eos_id=shape.eos_id) != shape:
        raise Unopenable(Paragraph("pretrained/no-pages", label=checked.family.label))
    return made


def _named(ids: dict[str, int], shown: tuple[str, ...]) -> dict[str, Any]:
    """Return the special tokens of a configuration: ids, and how two of them are written."""
    found: dict[str, Any] = {f"{name}_id": number for name, number in ids.items()}
    for name in ("bos", "eos"):
        number = ids[name]
        found[name] = shown[number][:100] if 0 <= number < len(shown) else ""
    return found


def _check_room(checked: Checked, store: RunStore) -> None:
    folder = next(one for one in (store.root, *store.root.parents) if one.is_dir())
    free = shutil.disk_usage(folder).free
    if checked.n_bytes > free:
        raise Unopenable(
            Paragraph("pretrained/no-room", size=in_bytes(checked.n_bytes), free=in_bytes(free))
        )


def _write_weights(checked: Checked, path: Path, say: Callable[[float], None]) -> None:
    """Write a checkpoint, one tensor after the other. Raises Unopenable and OSError.

    The format: the length of a header, the header in JSON, the numbers of all tensors.
    """
    shapes = {f"{MODEL}{name}": tuple(shape) for name, shape in checked.shapes.items()}
    header: dict[str, Any] = {"__metadata__": {"trainer": json.dumps(_FACTS)}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    words = json.dumps(header, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 8)
    with path.open("xb") as file:
        file.write(len(words).to_bytes(8, "little") + words)
        done = 0
        for _name, values in parameters_of(checked):
            file.write(values.numpy().data.cast("B"))
            done += values.numel()
            say(done / checked.n_parameters)
    sync_file(path)


def _items(experiment: Experiment) -> list[dict[str, Any]]:
    """Return the sentences that are looked at first, as far as the model is long enough."""
    if isinstance(experiment.task, CorpusTaskConfig):
        corpus, most = corpus_task(experiment.task), experiment.task.max_tgt_len
        cut = [corpus.tokenize(text)[:most] for text in SENTENCES]
        return prompted_items(corpus, [Pair((), row, ((),) * len(row)) for row in cut])
    task = experiment.task_as(PretrainedReaderConfig)
    words, items = reader(task), []
    for text in SENTENCES:
        src = words.cut(text)
        items.append({
            "src": list(src), "tgt": [], "alignment": [], "src_text": words.join_src(src),
            "tgt_text": "",
        })  # fmt: skip
    return items


def _snapshot(run: Run, items: list[dict[str, Any]]) -> Snapshot:
    """Look at a few sentences, each by itself: no model needs padding then."""
    experiment, (model, step) = run.experiment, model_of(run)
    maps: list[dict[str, Array]] = []
    masks: list[dict[str, Array]] = []
    for item in items:
        with capture(model, only={"weights", "mask"}) as cache:
            model(*of_text(experiment, item, None))
        found = cache.of("weights")
        maps.append({name: half(one[0]) for name, one in found.items()})
        masks.append({
            name: np.broadcast_to(mask[0].any(0), maps[-1][name].shape[1:])
            for name, mask in cache.masks().items()
        })  # fmt: skip
    names = list(maps[0])
    words = _continuations(model, experiment, items) if isinstance(model, DecoderOnly) else {}
    return Snapshot(
        step=step,
        attention={name: _padded([one[name] for one in maps]) for name in names},
        masks={name: _padded([one[name] for one in masks])[:, None] for name in names},
        positions=positions_of(model),
        **words,
    )


def _continuations(
    model: DecoderOnly, experiment: Experiment, items: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return how a language model goes on from the prompts: the words of a snapshot."""
    config = experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    prompts = [task.tgt_vocabulary.encode(item["tgt"][: item["prompt"]]) for item in items]
    ids, confidence = continued(model, config, torch.tensor(prompts))
    tokens = [task.tgt_vocabulary.decode(row) for row in ids.tolist()]
    return {
        "ids": ids.numpy().astype(np.int32),
        "confidence": half(confidence),
        "tokens": tokens,
        "texts": [task.join_tgt(row) for row in tokens],
    }


def _padded(arrays: list[Array]) -> Array:
    """Return arrays of several sizes as one, with zeros behind them."""
    shape = np.max([one.shape for one in arrays], axis=0)
    whole = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for number, one in enumerate(arrays):
        region = (slice(number, number + 1), *(slice(size) for size in one.shape))
        whole[region] = one[None]
    return whole
