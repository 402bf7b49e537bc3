"""Finding runs by words: their labels, what they learn, and what their settings are. Torch-free."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.config import Experiment
from tfm_core.inspect.compare.differences import settings
from tfm_core.runs.run import Run


def is_found(run: Run, words: str, *, also: str = "") -> bool:
    """Return whether every word stands in a label of a run, in ``also``, or begins a variant.

    ``n_heads=8`` finds that setting alone, ``#too-slow`` the runs with that tag.
    """
    wanted = words.casefold().split()
    if not wanted:
        return True
    own = _own_words(run) + also.casefold()
    exact = {f"#{tag.casefold()}".replace(" ", "-") for tag in run.labels.tags}
    variants: tuple[str, ...] = ()
    if run.problem is None:
        pairs, variants = _setting_words(run.experiment)
        exact |= pairs
    return all(
        word in exact
        if word[0] == "#" or "=" in word
        else word in own or any(one.startswith(word) for one in variants)
        for word in wanted
    )


def _own_words(run: Run) -> str:
    labels = run.labels
    parts = [run.meta.name, run.meta.preset or "", *labels.tags, labels.note, labels.group or ""]
    return "\n".join(parts).casefold()


@lru_cache(maxsize=8192)
def _setting_words(experiment: Experiment) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return settings as ``name=value``, and the words of the variants that were chosen.

    Numbers are found by their names alone: there is a 1 in every run.
    """
    known = settings(experiment)
    pairs = {
        f"{name}={str(one.value).casefold()}"
        for path, one in known.items()
        for name in (path, path.rpartition(".")[2])
    }
    said = {
        word
        for path, one in known.items()
        if isinstance(one.value, str) and path != "task.text"
        for word in (*one.said.casefold().split(), str(one.value).casefold())
    }
    return frozenset(pairs), tuple(sorted(said))
