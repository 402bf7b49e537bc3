"""The order in which heads take their roles over a training, from the labels of its snapshots.

A role is taken when a head has it at a snapshot and keeps it to the last one. Torch-free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from tfm_core.inspect.attention import heads as head_table
from tfm_core.inspect.attention.heads import ALIGNED, NO_CHOICE, ROLES, SPREAD, UNCLEAR
from tfm_core.inspect.knockouts.measure import score_without
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.inspect.tables import table
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph
from tfm_core.studies.induction import INDUCTION
from tfm_core.studies.phenomenon import Phenomenon, first, stays

WORDS: Mapping[str, str] = {
    ALIGNED: N_("true source words"),
    **{name: role["label"] for name, role in ROLES.items()},
    SPREAD: N_("evenly spread"),
    NO_CHOICE: N_("only one key"),
    UNCLEAR: N_("no clear role"),
}
"""Every role, in words."""
N_KNOCKED = 500
NONE = frozenset({SPREAD, NO_CHOICE, UNCLEAR})
"""Labels that are no role."""


HEAD = ["kind", "module", "layer", "head"]


ORDER = Phenomenon(
    name="specialise",
    title=N_("Heads take their roles"),
    base=INDUCTION.base,  # so the runs of that finding are these
    arms=(INDUCTION.arm("two-layers"), INDUCTION.arm("one-layer")),
    metrics=("validation-accuracy",),
    right=N_("together, within a few steps"),
    wrong={
        N_("“previous token” long before"): Paragraph("discover/specialise-previous"),
        N_("“induction” long before"): Paragraph("discover/specialise-induction"),
    },
    paper="Olsson et al. 2022, Voita et al. 2019",
    address="https://arxiv.org/abs/2209.11895",
    levels=INDUCTION.levels,
    example=INDUCTION.example,
)


def timeline(run: Run) -> pd.DataFrame:
    """Return what each head of a run is at each snapshot, a row each.

    kind, module: of its attention; layer, head: from 0; step; role; label: the role and its figure
    in words. Raises ValueError for a damaged snapshot.
    """
    rows = []
    for step in run.snapshot_steps():
        for row in head_table.rows_of_step(run, step):
            place = row["kind"], row["module"], row["layer"] - 1, row["head"] - 1
            rows.append((*place, step, row["role"], row["label"]))
    return table(rows, kind=str, module=str, layer=int, head=int, step=int, role=str, label=object)


def heads(line: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the rows of each head of a timeline, kind by kind, layer by layer."""
    return [rows for _head, rows in line.groupby(HEAD, sort=False)]


def taken(rows: pd.DataFrame) -> int | None:
    """Return the step from which on a head has its last role.

    None where that is no role, or it had it before training.
    """
    role = rows["role"].iloc[-1]
    is_it = stays((rows["role"] == role).to_numpy())
    return None if role in NONE or is_it[0] else first(rows["step"].to_numpy(), is_it)


def first_taken(line: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of the first head to take each role of a timeline, in order.

    step: from which on the head has the role.
    """
    last = line.groupby(HEAD, sort=False).tail(1)
    found = last.assign(step=[taken(rows) for rows in heads(line)]).dropna(subset="step")
    return found.sort_values("step", kind="stable").drop_duplicates("role")


def order(lines: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return when each role is first taken in some runs, the earliest first.

    Of the steps, mean and std (NaN of one run), and the count of runs in which a head takes it.
    """
    firsts = pd.concat([pd.DataFrame({"role": [], "step": []}), *map(first_taken, lines)])
    found = firsts.groupby("role", sort=False)["step"].agg(["mean", "std", "count"]).reset_index()
    return found.sort_values("mean", kind="stable")


def without(run: Run, *parts: Part) -> float:
    """Return the share right where some parts give their mean. Raises ValueError."""
    return score_without(run, parts, "mean", N_KNOCKED).accuracy
