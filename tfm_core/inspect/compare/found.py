"""Finding runs by words: name, tags, note, group, task, model, and every setting. Torch-free."""

from __future__ import annotations

from functools import lru_cache

from tfm_core.config import Experiment
from tfm_core.inspect.compare.differences import settings
from tfm_core.runs.run import Run


def is_found(run: Run, words: str, *, also: str = "") -> bool:
    """Return whether every word stands somewhere in what is known of a run, or in ``also``.

    ``n_heads=8`` finds that setting alone, ``#too-slow`` the runs with that tag.
    """
    wanted = words.casefold().split()
    if not wanted:
        return True
    own = _own_words(run) + also.casefold()
    exact = {f"#{tag.casefold()}".replace(" ", "-") for tag in run.labels.tags}
    if run.problem is None:
        pairs, said = _setting_words(run.experiment)
        exact |= pairs
        own += said
    return all(word in (exact if word[0] == "#" or "=" in word else own) for word in wanted)


def _own_words(run: Run) -> str:
    labels = run.labels
    parts = [run.meta.name, run.meta.preset or "", *labels.tags, labels.note, labels.group or ""]
    return "\n".join(parts).casefold()


@lru_cache(maxsize=8192)
def _setting_words(experiment: Experiment) -> tuple[frozenset[str], str]:
    """Return settings as ``name=value``, and all their labels and values in words."""
    known = settings(experiment)
    pairs = {
        f"{name}={str(one.value).casefold()}"
        for path, one in known.items()
        for name in (path, path.rpartition(".")[2])
    }
    said = [f"{path} {one.label} {one.said}" for path, one in known.items()]
    said.append(experiment.task.facts.label)
    return frozenset(pairs), "\n".join(said).casefold()
