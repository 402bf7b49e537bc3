"""How many examples are watched; over the validation set every example counts."""

import numpy as np
import pytest

from tests.facts.test_storage import PATCH_1
from tests.inspect.attention.test_own_example import trained
from tests.inspect.constructed import small, vit_experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.attention import heads, pictures
from tfm_core.inspect.attention import trained as budget
from tfm_core.layers.attention import MultiHeadAttention

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_heads import of_module, statistics  # noqa: E402
from tests.inspect.constructed import text_experiment  # noqa: E402
from tests.probe.expected_masks import expected_masks  # noqa: E402
from tfm_core.inspect.attention.heads import ROLES, relations_of  # noqa: E402
from tfm_core.probe.capture import capture  # noqa: E402
from tfm_core.probe.labels import modules_by_kind  # noqa: E402

EXPERIMENTS = {
    **{
        family: text_experiment(family)
        for family in ("encoder-decoder", "encoder-only", "decoder-only")
    },
    "vit": vit_experiment(),
    "vit with CLS": vit_experiment("cls"),
}


@pytest.fixture(scope="module", params=EXPERIMENTS)
def run_and_trainer(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), small(EXPERIMENTS[request.param]), steps=2)


def test_figures_are_of_one_pass_and_alignment_where_targets_are(run_and_trainer, monkeypatch):
    run, _trainer = run_and_trainer
    found = heads.over_validation(run)
    assert ("aligned" in found) == (run.experiment.task.kind == "text")
    for name in {"aligned", "aer"} & set(found):
        assert found[name].dropna().between(0, 1).all()
    run, trainer = run_and_trainer
    monkeypatch.setattr(heads, "_BATCH", 3)
    found = heads.over_validation(run, limit=7)
    data = trainer.data.validation
    if run.experiment.task.kind == "image":
        inputs = (trainer.data.normalise(data.images[:7]),)
        items = [{}] * 7
    else:
        inputs = (data.src[:7], data.tgt[:7, :-1])
        items = [{"src": pair.src, "tgt": pair.tgt} for pair in data.pairs[:7]]
    with capture(trainer.model, only={"weights"}) as cache:
        trainer.model(*inputs)
    assert (found["step"] == 2).all()
    assert (found["n_examples"] == 7).all()
    for kind, modules in modules_by_kind(run.experiment).items():
        for module in modules:
            weights = cache.of("weights")[module].numpy()
            may_attend = np.ones((7, *weights.shape[2:]), bool)
            if run.experiment.task.kind == "text":
                may_attend = expected_masks(run.experiment, items, module)
            relations = relations_of(run.experiment, items, kind, may_attend)
            whole = statistics(weights, relations.may_attend, relations, kind)
            part = of_module(found, module)
            for name in ("entropy", "distance", *(role for role in ROLES if role in whole)):
                np.testing.assert_allclose(part[name], whole[name], rtol=1e-4, atol=1e-7)


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
    found = heads.over_validation(run)
    assert set(found["n_examples"]) == {8}
    assert set(found["n_all"]) == {500}
    assert max(few_at_once) == 3


def test_tokens_are_probed_in_parts_that_fit(run, few_at_once, monkeypatch) -> None:
    monkeypatch.setattr(pictures, "N_MIN", 30)
    _read, looks, facts = pictures.token_roles(run)
    assert (facts["n_fit"], facts["n_tried"]) == (30, 30)
    assert max(few_at_once) == 3
    assert len(looks) == 2
    assert np.isfinite(looks).all()
