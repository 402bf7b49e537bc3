"""A look as a run, so that pages show it: its maps as one snapshot, its tokens as the examples.

Pages show layers of one shape. A model with several (windows, stages) shows those of which it has
most; ``left_out`` names the rest, which stay in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.data.vocabulary import text_of_names
from tfm_core.looking.foreign import Stacks, stacks_of
from tfm_core.looking.seen import Seen
from tfm_core.looking.unseen import sizes
from tfm_core.probe.form import MAX_EXAMPLES
from tfm_core.runs import snapshots
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

_MAX_NUMBERS = 2**27
"""Of all maps of a run: 256 MB in half precision."""
_MAX_TEXTS, _MAX_TEXT = 100_000, 120


def check_room(look: Seen) -> None:
    """Raise StudentError where no run can show a look. Asks only for the shapes of its weights."""
    _n_examples(look)


def left_out(look: Seen) -> tuple[str, ...]:
    """Return the names of the maps that the run of a look does not show."""
    shown = {one.name for one in stacks_of(look).all}
    return tuple(name for name in look.maps if name not in shown)


def open_look(
    look: Seen,
    store: RunStore,
    *,
    name: str | None = None,
    owner: str | None = None,
    owner_name: str | None = None,
) -> Run:
    """Make a run of a look for ``owner``. Raises ValueError, in a sentence, with no run made."""
    stacks, n_examples = stacks_of(look), _n_examples(look)
    experiment = _experiment(look, stacks)
    items = [_item(look, stacks, number) for number in range(1, n_examples + 1)]
    snapshot = stacks.snapshot(experiment, 0, n_examples)

    def fill(folder: Path) -> None:
        snapshots.write_probe(folder, {"kind": "text", "items": items})
        snapshots.write_snapshot(folder, snapshot)
        Run(folder).snapshot(0)

    return store.bring(
        experiment,
        Status("opened"),
        fill,
        name=name or look.model,
        owner=owner,
        owner_name=owner_name,
    )


def _n_examples(look: Seen) -> int:
    """Return how many examples of the batch a run keeps. Raises StudentError if not even one."""
    stacks = stacks_of(look)
    if not look.maps:
        raise StudentError("This look has no map to open.")
    if not stacks.all:
        raise StudentError(
            "No map of this look can be opened: its keys are other positions than its queries."
        )
    each = sum(one.weights[0].numel() for one in stacks.all)
    if each > _MAX_NUMBERS:
        raise StudentError(
            "The maps of one example take {size} in a run; {most} are allowed. Look at some layers "
            "(layers=) or fewer positions (crop=).",
            **sizes(2 * each, 2 * _MAX_NUMBERS),
        )
    return min(len(stacks.all[0].weights), MAX_EXAMPLES, max(1, _MAX_NUMBERS // each))


def _experiment(look: Seen, stacks: Stacks) -> Experiment:
    """Return the configuration that has such maps. Raises StudentError where none has."""
    reads = stacks.cross or stacks.both
    task: dict[str, Any] = {
        "name": "look",
        "src_len": reads[0].weights.shape[3] if reads else 0,
        "unseen": "\n".join(" ".join(one.split()) for one in look.unseen)[:_MAX_TEXTS],
    }
    if stacks.cross or stacks.past:
        words = _written(look, stacks)
        task |= {"tgt_len": len(words) - 1, "bos": words[0][:100]}
    try:
        return stacks.experiment(look, **task)
    except ConfigError as error:
        raise StudentError("This look cannot be opened: {why}", why=error.sentence) from None


def _written(look: Seen, stacks: Stacks) -> Sequence[str]:
    """Return the names of the positions that a decoder has."""
    return look.names((stacks.cross or stacks.past)[0])[0]


def _item(look: Seen, stacks: Stacks, number: int) -> dict[str, Any]:
    """Return an example of the probe. number: in the batch, from 1."""
    src: Sequence[str] = ()
    if stacks.cross:
        src = look.names(stacks.cross[0])[1]
    elif stacks.both:
        src = look.names(stacks.both[0])[0]
    tgt = _written(look, stacks)[1:] if stacks.cross or stacks.past else ()
    item: dict[str, Any] = {
        "src": list(src),
        "tgt": list(tgt),
        "alignment": [[] for _one in tgt],
        "src_text": _text(look, src or _written(look, stacks)),
        "tgt_text": text_of_names(tgt),
    }
    if not src:
        item["prompt"] = len(tgt)
    return item


def _text(look: Seen, names: Sequence[str]) -> str:
    """Return what is read in one line: its beginning, or the model's name for mere numbers."""
    if not look.tokens:
        return look.model
    text = text_of_names(names)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
