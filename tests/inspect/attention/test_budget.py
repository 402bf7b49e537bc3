"""How many examples are watched: counted in the numbers of their maps, not in seconds."""

import numpy as np
import pytest

from tests.facts.test_storage import PATCH_1
from tests.inspect.attention.test_own_example import trained
from tests.inspect.constructed import small, vit_experiment
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.attention import token_roles, validation
from tfm_core.inspect.attention import trained as budget
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.presets import PRESETS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), small(vit_experiment("cls")), steps=1)[0]


@pytest.fixture
def few_at_once(run, monkeypatch):
    """The pictures of each explicit pass, where 3 fit into one and 8 into a question."""
    numbers, seen = attention_numbers(run.experiment), []
    monkeypatch.setattr(budget, "AT_ONCE", 3 * numbers)
    monkeypatch.setattr(budget, "IN_ALL", 8 * numbers)
    explicit = MultiHeadAttention.attend_explicitly

    def counted(self, q, *rest):
        seen.append(len(q))
        return explicit(self, q, *rest)

    monkeypatch.setattr(MultiHeadAttention, "attend_explicitly", counted)
    return seen


def test_the_budgets_bind_no_preset_but_patches_of_one_pixel() -> None:
    for preset in PRESETS.values():
        assert budget.in_all(preset.experiment, 1000) == 1000
        assert budget.at_once(preset.experiment, 50) == 50
    assert budget.at_once(PATCH_1, 50) == 1
    assert budget.in_all(PATCH_1, 1000) * attention_numbers(PATCH_1) <= budget.IN_ALL


def test_the_validation_set_passes_in_parts_that_fit(run, few_at_once) -> None:
    figures = validation.measured_over_validation(run)
    assert figures.n_examples == 8
    assert figures.n_all == 500
    assert max(few_at_once) == 3
    assert {one.n_examples for one in figures.statistics.values()} == {8}


def test_tokens_are_probed_in_parts_that_fit(run, few_at_once, monkeypatch) -> None:
    monkeypatch.setattr(token_roles, "N_MIN", 30)
    found = token_roles.token_roles(run)
    assert (found.n_fit, found.n_tried) == (30, 30)
    assert max(few_at_once) == 3
    assert len(found.looks) == 2
    assert np.isfinite(found.looks).all()
