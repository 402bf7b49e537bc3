"""Runs in a notebook: opened by name, curves as a table, attention as an array.

    from tfm_core import runs
    run = runs.open("recorded-korean")
    run.curves()
    run.attention(layer=0, kind="cross")

pandas and torch are loaded where they are needed: the app and its workers import this package too.
"""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment, ForeignModelConfig, family_label
from tfm_core.probe.labels import axes, modules_by_kind, rows
from tfm_core.probe.masks import cut
from tfm_core.probe.types import Snapshot
from tfm_core.runs.curves import MEASURED_COLUMNS, STEP_COLUMNS, Series
from tfm_core.runs.run import ID, Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    import pandas as pd

    from tfm_core.models.build import Model

_MAX_NAMED = 5  # runs that a sentence lists
_LISTED = (
    "id",
    "name",
    "group",
    "state",
    "created",
    "family",
    "task",
    "seed",
    "step",
    "total_steps",
    "seconds",
    "recorded",
)
_TELLING = ("cross", "picture")
"""The most informative kinds of attention, if a model has one."""


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Where heads look, on one example at one step.

    weights: float32, (H, Q, K) of one layer or (L, H, Q, K) of all; each row sums to 1 over the
    keys that its query may attend to, or to less where the model has an attention sink. query: Q
    names of rows, key: K names of columns; may_attend: bool (Q, K), True = may attend. numpy takes
    it as its weights.
    """

    weights: npt.NDArray[np.float32]
    query: tuple[str, ...]
    key: tuple[str, ...]
    may_attend: npt.NDArray[np.bool_]
    kind: str
    step: int
    example: int
    layer: int | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the weights."""
        return np.array(self.weights, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        """Return what it is of."""
        which = "all layers" if self.layer is None else f"layer {self.layer}"
        return (
            f"Attention({self.kind}, {which}, step {self.step}, example {self.example}, "
            f"weights {self.weights.shape})"
        )


class OpenedRun:
    """A run to look at. ``run`` is its folder, as the app reads it."""

    def __init__(self, run: Run) -> None:
        """Take a run. Raises RunDamaged, in a sentence, if its experiment cannot be read."""
        self.run = run
        self.experiment: Experiment = run.experiment

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.run.id

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.run.meta.name

    @property
    def status(self) -> Status:
        """Its state as it is now."""
        return self.run.status

    @property
    def steps(self) -> list[int]:
        """The steps of its snapshots, ascending: those that ``attention`` can be asked for."""
        return self.run.snapshot_steps()

    @property
    def attention_kinds(self) -> dict[str, int]:
        """The kinds of attention of its model, each with its number of layers."""
        return {kind: len(names) for kind, names in modules_by_kind(self.experiment).items()}

    def curves(self) -> pd.DataFrame:
        """Return all that was measured, a row a measurement, by step and split.

        split: ``train`` (one batch), ``validation``, ``validation-average`` (of averaged weights,
        where there are any) or ``test``; step: updates done, from 1; epoch: passes over the
        training examples; loss: nats per answer; accuracy, sequence_accuracy: shares, 0 to 1, of
        single answers and of whole sequences; learning_rate; grad_norm: length of the gradient
        before clipping; examples_per_second; memory_bytes; seconds, cpu_seconds: trained so far, of
        the clock and of the processor; balance: how unequally tokens are spread over the experts,
        1 where alike. What was not measured is NaN. Read anew at each call: of a
        run that trains there are more rows.
        """
        import pandas as pd

        curves = self.run.curves()
        parts = (
            ("train", curves.steps),
            ("validation", curves.validation),
            ("validation-average", curves.averaged),
            ("test", curves.test),
        )
        columns = list(dict.fromkeys((*STEP_COLUMNS, *MEASURED_COLUMNS)))
        found = pd.DataFrame(
            {
                "split": [split for split, part in parts for _n in range(len(part))],
                **{
                    column: np.concatenate([_column(part, column) for _split, part in parts])
                    for column in columns
                },
            }
        )
        found["step"] = found["step"].astype("int64")
        return found.sort_values("step", kind="stable", ignore_index=True)

    def attention(
        self,
        *,
        step: int | None = None,
        layer: int | None = None,
        kind: str | None = None,
        example: int = 0,
    ) -> Attention:
        """Return where the heads look on an example of the probe.

        step: of a snapshot, see ``steps``; None for the last. layer: from 0; None for all. kind:
        one of ``attention_kinds``; None for cross-attention where there is one, else the first.
        Raises ValueError, in a sentence, for what is not there.
        """
        known = modules_by_kind(self.experiment)
        chosen = kind or next((name for name in _TELLING if name in known), next(iter(known)))
        if chosen not in known:
            raise StudentError(
                "This model has no attention {kind!r}, only {known}.",
                kind=chosen,
                known=", ".join(known),
            )
        modules = known[chosen]
        if layer is not None and not 0 <= layer < len(modules):
            raise StudentError(
                "There is no layer {layer}; the last is {last}, counting from 0.",
                layer=layer,
                last=len(modules) - 1,
            )
        snapshot = self._snapshot(step)
        item = self._item(example, snapshot)
        wanted = modules if layer is None else [modules[layer]]
        lacking = [name for name in wanted if name not in snapshot.attention]
        if lacking:
            raise StudentError("The attention of {lacking} was not recorded.", lacking=lacking[0])
        names = axes(self.experiment, item, wanted[0])
        n_query, n_key = names.shape
        weights = np.stack(
            [snapshot.attention[name][example, :, :n_query, :n_key] for name in wanted]
        ).astype(np.float32)
        return Attention(
            weights=weights if layer is None else weights[0],
            query=rows(self.experiment, item, wanted[0]).names,
            key=names.key,
            may_attend=cut(snapshot.masks[wanted[0]], example, names.shape),
            kind=chosen,
            step=snapshot.step,
            example=example,
            layer=layer,
        )

    def model(self) -> Model:
        """Return the trained model, in eval mode on the CPU, as its last checkpoint left it.

        With the averaged weights, where the training averages.

        Raises ValueError, in a sentence, where there is no checkpoint that can be read.
        """
        from tfm_core.training.checkpoints import load_model

        if not self.run.has_checkpoint:
            raise StudentError("The run “{name}” has no checkpoint yet.", name=self.name)
        model, _step = load_model(self.experiment, self.run.folder / "checkpoints" / "last")
        return model

    def _snapshot(self, step: int | None) -> Snapshot:
        steps = self.steps
        if not steps:
            raise StudentError("The run “{name}” has no snapshot yet.", name=self.name)
        if step is not None and step not in steps:
            near = min(steps, key=lambda recorded: abs(recorded - step))
            raise StudentError(
                "There is no snapshot of step {step:,}; the nearest of {n} is {near:,}.",
                step=step,
                near=near,
                n=len(steps),
            )
        return self.run.snapshot(steps[-1] if step is None else step)

    def _item(self, example: int, snapshot: Snapshot) -> dict[str, Any]:
        items = self.run.probe().attended
        kept = min([len(items), *(len(maps) for maps in snapshot.attention.values())])
        if not 0 <= example < kept:
            raise StudentError(
                "There is no example {example}; the {n} examples are numbered from 0.",
                example=example,
                n=kept,
            )
        return items[example]

    def __repr__(self) -> str:
        """Return its name, and how to open it."""
        return f"<run “{self.name}”, {self.status.state}: runs.open({self.id!r})>"

    def _repr_html_(self) -> str:
        """Return what Jupyter shows of it: the facts, in a small table."""
        model, training, status = self.experiment.model, self.experiment.training, self.status
        name, size = family_label(model.family), ""
        if isinstance(model, ForeignModelConfig):
            name = f"{name} {model.class_name}"
        elif hasattr(model, "n_heads"):
            size = f", {model.n_heads} heads, width {model.d_model}"
        facts = {
            "id": self.id,
            "state": f"{status.state}, step {status.step:,} of {status.total_steps:,}"
            if status.total_steps
            else status.state,
            "model": f"{name}{size}",
            "task": str(self.experiment.task.facts.label),
            "training": f"{training.optimizer}, learning rate {training.learning_rate:g}, seed "
            f"{self.experiment.seed}"
            if training
            else "",
            "snapshots": str(len(self.steps)),
            "attention": ", ".join(f"{kind} ({n})" for kind, n in self.attention_kinds.items()),
        }
        lines = "".join(
            f"<tr><th style='text-align:left'>{name}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in facts.items()
            if text
        )
        caption = f"<caption style='text-align:left'>{html.escape(self.name)}</caption>"
        return f"<table>{caption}{lines}</table>"


def open_run(which: str | os.PathLike[str], *, store: RunStore | None = None) -> OpenedRun:
    """Open a run by its id, the beginning of it, its name or its folder.

    store: without one, the runs of ``TFM_RUNS_DIR`` and those that come with the app. Raises
    ValueError, in a sentence, where there is none or several could be meant.
    """
    store = RunStore() if store is None else store
    text = os.fspath(which)
    folder = os.path.expanduser(text)
    if os.path.isfile(os.path.join(folder, "experiment.json")):
        return OpenedRun(Run(Path(folder).absolute()))
    if os.path.isdir(folder) and not ID.fullmatch(text):
        raise RunNotFound("{folder} is not a run: it has no experiment.json.", folder=text)
    known = store.list()
    for found in (
        [run for run in known if run.id == text],
        [run for run in known if text and run.id.startswith(text)],
        [run for run in known if run.meta.name.casefold() == text.strip().casefold()],
    ):
        if len(found) == 1:
            return OpenedRun(found[0])
        if found:
            more = len(found) - _MAX_NAMED
            named = ", ".join(f"{run.id} (“{run.meta.name}”)" for run in found[:_MAX_NAMED])
            raise StudentError(
                "“{text}” matches {n} runs: {runs}. Give the start of one id.",
                n=len(found),
                text=text,
                runs=f"{named} and {more} more" if more > 0 else named,
            )
    raise RunNotFound(
        "No run has the id, name or folder “{text}”. runs.list() lists those in {root}.",
        text=text[:80],
        root=store.root,
    )


def list_runs(*, store: RunStore | None = None) -> pd.DataFrame:
    """Return all runs, newest first, the recorded ones last: a row a run.

    id, name, group, state; created: UTC; family, task: names; seed; step: done so far; total_steps;
    seconds: of training; recorded: whether it came with the app. Of a damaged run family, task and
    seed are missing.
    """
    import pandas as pd

    found = (RunStore() if store is None else store).list()
    frame = pd.DataFrame([_facts(run) for run in found], columns=list(_LISTED))
    frame["created"] = pd.to_datetime(frame["created"], utc=True, format="ISO8601")
    frame["seed"] = frame["seed"].astype("Int64")
    return frame


def _facts(run: Run) -> tuple[object, ...]:
    meta, status = run.meta, run.status
    experiment = None if run.problem is not None else run.experiment
    return (
        run.id,
        meta.name,
        run.labels.group,
        status.state,
        meta.created,
        None if experiment is None else experiment.model.family,
        None if experiment is None else experiment.task.name,
        None if experiment is None else experiment.seed,
        status.step,
        status.total_steps,
        status.seconds,
        meta.recorded,
    )


def _column(series: Series, column: str) -> npt.NDArray[np.float64]:
    if column not in series.columns:
        return np.full(len(series), np.nan)
    return np.asarray(series[column], np.float64)
