"""When a head has taken a role: on constructed rows, and on random maps where none does."""

import math

import pandas as pd
import pytest

from tests.inspect.constructed import constructed_run, text_experiment
from tfm_core.inspect.attention.heads import ALIGNED, SPREAD, UNCLEAR
from tfm_core.inspect.knockouts.parts import heads_of, part_of
from tfm_core.runs.store import RunStore
from tfm_core.studies.specialise import HEAD, first_taken, heads, order, taken, timeline

pytestmark = pytest.mark.quick
STEPS = (0, 10, 30, 70)


def line(*roles, head=0):
    of_head = {"kind": "decoder", "module": "decoder.layers.0.self_attention", "layer": 0}
    return pd.DataFrame({**of_head, "head": head, "step": STEPS, "role": roles, "label": roles})


@pytest.mark.parametrize(
    ("roles", "step"),
    [
        ((UNCLEAR, UNCLEAR, "previous", "previous"), 30),
        ((UNCLEAR, "previous", UNCLEAR, "previous"), 70),
        ((UNCLEAR, "first", "first", "previous"), 70),  # the last role counts
        (("previous",) * 4, None),  # not taken: it was there
        ((UNCLEAR, "previous", "previous", UNCLEAR), None),  # given up
        ((UNCLEAR, SPREAD, SPREAD, SPREAD), None),  # no role
        ((UNCLEAR,) * 4, None),
    ],
)
def test_a_role_is_taken_where_it_begins_to_stay(roles, step):
    assert taken(line(*roles)) == step


def test_the_first_head_of_a_role_counts_and_over_seeds_it_has_a_mean_and_a_spread():
    late = line(UNCLEAR, UNCLEAR, UNCLEAR, "previous")
    early = line(UNCLEAR, "previous", "previous", "previous", head=1)
    other = line(UNCLEAR, UNCLEAR, ALIGNED, ALIGNED, head=2)
    found = first_taken(pd.concat([late, early, other]))
    assert found[["role", "step", "head"]].to_numpy().tolist() == [
        ["previous", 10, 1],
        [ALIGNED, 30, 2],
    ]
    runs = [
        line(UNCLEAR, "previous", "previous", "previous"),
        line(UNCLEAR, UNCLEAR, "previous", "previous"),
        line(UNCLEAR, UNCLEAR, UNCLEAR, UNCLEAR),
    ]
    ((role, mean, sd, n),) = order(runs).itertuples(index=False)
    assert (role, mean, sd, n) == ("previous", 20, pytest.approx(math.sqrt(200)), 2)
    assert order([]).empty


def test_random_maps_take_no_role_and_every_head_has_a_row(tmp_path):
    experiment = text_experiment()
    run = constructed_run(RunStore(tmp_path), experiment)
    table = timeline(run)
    parts = [
        part_of(module, head)
        for _kind, module, _layer, head in table[HEAD].drop_duplicates().to_numpy()
    ]
    assert parts == sorted(heads_of(experiment), key=parts.index)
    assert {len(rows) for rows in heads(table)} == {table["step"].nunique()}
    assert table["label"].all()
