"""Any two cells and any two alignment scores give different outputs, and cost what they say."""

from itertools import combinations

import torch

from tests.models.variants import text_batch, text_model
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.cells import CELLS
from tfm_core.choices.variants.record import resolve


def test_any_two_variants_differ_and_a_cell_has_its_gates_and_equation():
    for setting, one, other in [
        *(("cell", *pair) for pair in combinations(CELLS, 2)),
        *(("attention", *pair) for pair in combinations(ALIGNMENT_SCORES, 2)),
    ]:
        models = [text_model("recurrent", **{setting: name}) for name in (one, other)]
        shared = {name: value.shape for name, value in models[1].state_dict().items()}
        weights = {
            name: value
            for name, value in models[0].state_dict().items()
            if shared.get(name) == value.shape
        }
        models[1].load_state_dict(weights, strict=False)
        outputs = [model(*text_batch()) for model in models]
        assert not torch.allclose(*outputs, atol=1e-5)
    for name in CELLS:
        cell = CELLS[name]
        step = resolve(cell.step)(5, 7)
        assert step.weight_ih.shape == (cell.n_gates * 7, 5)
        assert isinstance(step(torch.ones(2, 5)), tuple) is cell.has_memory
        assert resolve(cell.sequence).__name__ == cell.class_name
    for registry in (CELLS, ALIGNMENT_SCORES):
        assert len({each.latex for each in registry.values()}) == len(registry)
