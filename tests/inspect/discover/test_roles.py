"""When a head has taken a role: on constructed rows, and on random maps where none does."""

import math

import pytest

from tests.inspect.constructed import constructed_run, text_experiment
from tfm_core.inspect.attention.head_statistics import ALIGNED, SPREAD, UNCLEAR
from tfm_core.inspect.discover.roles import HeadLine, Taken, Timeline, order, timeline
from tfm_core.inspect.knockouts.parts import heads_of
from tfm_core.runs.store import RunStore

pytestmark = pytest.mark.quick
STEPS = (0, 10, 30, 70)


def line(*roles, head=0):
    module = "decoder.layers.0.self_attention"
    return HeadLine("decoder", module, 0, head, roles, tuple(f"{role}, 90%" for role in roles))


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
    assert line(*roles).taken(STEPS) == step


def test_the_first_head_of_a_role_counts_and_over_seeds_it_has_a_mean_and_a_spread():
    late = line(UNCLEAR, UNCLEAR, UNCLEAR, "previous")
    early = line(UNCLEAR, "previous", "previous", "previous", head=1)
    other = line(UNCLEAR, UNCLEAR, ALIGNED, ALIGNED, head=2)
    found = Timeline(STEPS, (late, early, other)).first()
    assert list(found.items()) == [("previous", (10, early)), (ALIGNED, (30, other))]
    runs = [
        Timeline(STEPS, (line(UNCLEAR, "previous", "previous", "previous"),)),
        Timeline(STEPS, (line(UNCLEAR, UNCLEAR, "previous", "previous"),)),
        Timeline(STEPS, (line(UNCLEAR, UNCLEAR, UNCLEAR, UNCLEAR),)),
    ]
    assert order(runs) == (Taken("previous", 20, pytest.approx(math.sqrt(200)), 2),)
    assert order([]) == ()


def test_random_maps_take_no_role_and_every_head_has_a_row(tmp_path):
    experiment = text_experiment()
    run = constructed_run(RunStore(tmp_path), experiment)
    found = timeline(run)
    assert [head.part for head in found.heads] == sorted(
        heads_of(experiment), key=[head.part for head in found.heads].index
    )
    assert {len(head.roles) for head in found.heads} == {len(found.steps)}
    assert all(label for head in found.heads for label in head.labels)
