"""Any two cells and any two alignment scores give different outputs, and cost what they say."""

from itertools import combinations

import torch

from tests.models.variants import text_batch, text_model
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS
from tfm_core.variants.record import resolve


def test_any_two_variants_differ():
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


def test_a_cell_has_the_gates_and_the_memory_of_its_record():
    for name in CELLS:
        cell = CELLS[name]
        step = resolve(cell.step)(5, 7)
        assert step.weight_ih.shape == (cell.n_gates * 7, 5)
        assert isinstance(step(torch.ones(2, 5)), tuple) is cell.has_memory
        assert resolve(cell.sequence).__name__ == cell.class_name


def test_a_score_has_the_matrices_of_its_record():
    for name in ALIGNMENT_SCORES:
        score = ALIGNMENT_SCORES[name]
        layer = resolve(score.layer)(5)
        matrices = [each for each in layer.parameters() if each.ndim == 2 and len(each) > 1]
        n_numbers = sum(each.numel() for each in matrices)
        assert n_numbers == (score.n_source + score.n_state) * 5 * 5


def test_no_two_records_say_the_same_equation():
    for registry in (CELLS, ALIGNMENT_SCORES):
        assert len({each.latex for each in registry.values()}) == len(registry)
