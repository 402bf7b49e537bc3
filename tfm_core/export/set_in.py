"""The custom set in a zip of a run, read as the app will read it before it is imported.

Its name is a digest of its content, and the experiment names it: no other set is accepted. It is
loaded in a temporary folder before anything is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import load, text_task
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.kinds import SET_KINDS
from tfm_core.data.user_data.sets import Prepared, UserSet
from tfm_core.data.user_data.task import user_task
from tfm_core.data.user_data.texts import MAX_LINE as MAX_TOKEN
from tfm_core.export import layout
from tfm_core.export.archive import Archive, Refused
from tfm_core.reading import Unreadable, is_text
from tfm_core.sentences import StudentError
from tfm_core.trace.source.carried import spelling_of

_BAD_VALUES = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""What reading raises of values that no set of this app has."""


def set_in(archive: Archive, experiment: Experiment) -> Prepared | None:
    """Return the set in a zip, None where there is none. Raises Refused."""
    inside = {name for name in archive.names if name.startswith(layout.SET)}
    if not inside:
        return None
    set_id = sets.set_of(experiment.task)
    try:
        prepared = sets.read_from(_reader(archive, layout.SET))
    except Unreadable as error:
        raise _damaged(error) from None
    if sets.id_of(prepared) != set_id:
        raise Refused(
            "This zip contains the set {found}, but the run uses {set_id}.",
            found=sets.id_of(prepared),
            set_id=set_id or "none",
        )
    if unknown := inside - {layout.SET + name for name in sets.files_of(prepared)}:
        raise Refused("{name} does not belong to a set.", name=min(unknown))
    _try(prepared, experiment)
    return prepared


@contextmanager
def vocabulary_in(archive: Archive, experiment: Experiment) -> Iterator[dict[str, bytes]]:
    """Return the vocabulary that a zip without its set holds for its run; {} where it holds none.

    While it is open, the task of the experiment is read with it. Raises Refused.
    """
    inside = {name for name in archive.names if name.startswith(layout.VOCABULARY)}
    if not inside:
        yield {}
        return
    set_id = sets.added_of(experiment.task)
    if unknown := inside - {layout.VOCABULARY + name for name in (sets.SET, sets.TOKENS)}:
        raise Refused("{name} does not belong to a set.", name=min(unknown))
    try:
        files = sets.read_vocabulary(set_id, _reader(archive, layout.VOCABULARY))
    except Unreadable as error:
        raise _damaged(error) from None
    with tempfile.TemporaryDirectory() as folder, sets.below(Path(folder)):
        (Path(folder) / "run").mkdir()
        sets.write_vocabulary(Path(folder) / "run", set_id, files)
        with _refusing():
            _check_words(experiment)
        yield files


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn every error of reading a set into Refused."""
    try:
        yield
    except Refused:
        raise
    except StudentError as error:
        raise _damaged(error) from None
    except _BAD_VALUES:
        raise Refused("The data in this zip is damaged.") from None


def _check_words(experiment: Experiment) -> None:
    """Read a vocabulary as pages do. Raises Refused, StudentError and what _BAD_VALUES names."""
    task = experiment.task
    if task.kind not in ("corpus", "own"):
        raise Refused("The data in this zip is of a different kind than the run's.")
    if task.kind == "own":
        _check_vocabularies(experiment, sets.find_vocabulary(task.data))
    text = text_task(task)
    for vocabulary in (text.src_vocabulary, text.tgt_vocabulary):
        if not all(is_text(token, MAX_TOKEN) and token for token in vocabulary.tokens):
            raise Refused("The vocabulary in this zip is damaged.")
    spelling_of(task)
    text.join_tgt(text.tgt_vocabulary.tokens[:1])


def _reader(archive: Archive, folder: str) -> Callable[[str, int], bytes]:
    def read(name: str, most: int) -> bytes:
        if folder + name not in archive:
            raise Unreadable("{file} is missing", file=name)
        return archive.read(folder + name, most=most)

    return read


def _try(prepared: Prepared, experiment: Experiment) -> None:
    """Read a set as pages and training do. Raises Refused."""
    if prepared.kind not in SET_KINDS or f"own-{prepared.kind}" != experiment.task.name:
        raise Refused("The data in this zip is of a different kind than the run's.")
    with tempfile.TemporaryDirectory() as folder, sets.below(Path(folder)), _refusing():
        own = sets.write(prepared)
        _check_vocabularies(experiment, own)
        load(experiment.task, seed=experiment.seed)
        kinds.proposals(own)
        kinds.report_of(own)


def _check_vocabularies(experiment: Experiment, own: UserSet) -> None:
    """Raise Refused where sentences have more words than the model has been given room for."""
    task = experiment.task
    if task.kind != "own":
        return
    learned = user_task(task)
    if (len(learned.src_vocabulary), len(learned.tgt_vocabulary)) != (task.n_src, task.n_tgt):
        raise Refused("The vocabulary of “{name}” does not fit its settings.", name=own.name)


def _damaged(error: StudentError) -> Refused:
    return Refused("The data in this zip is damaged: {why}", why=error.sentence)
