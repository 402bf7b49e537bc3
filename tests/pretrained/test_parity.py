"""Opened folders are equal to the models of Transformers that were saved in them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import (
    ANSWER,
    FOLDERS,
    MODELS,
    answer,
    save,
)
from tfm_core.pretrained.families import PRETRAINED
from tfm_core.pretrained.model import check_folder, load_model

pytestmark = pytest.mark.quick


def opened(folder):
    checked = check_folder(folder)
    return checked, load_model(checked)


@pytest.mark.parametrize("name", MODELS)
def test_an_opened_model_answers_as_the_saved_one_did(name):
    checked, model = opened(FOLDERS / name)
    expected = load_file(FOLDERS / name / ANSWER)["answer"]
    assert expected.abs().max() > 0.5  # else 1e-4 would say nothing
    torch.testing.assert_close(answer(checked.config, model), expected, atol=1e-4, rtol=0)
    assert checked.n_parameters == sum(one.numel() for one in model.parameters())


@pytest.mark.skipif(find_spec("transformers") is None, reason="Transformers is not installed")
@pytest.mark.parametrize("name", MODELS)
def test_an_opened_model_answers_as_todays_transformers(name, tmp_path):
    save(name, tmp_path)
    checked, model = opened(tmp_path)
    expected = load_file(tmp_path / ANSWER)["answer"]
    torch.testing.assert_close(answer(checked.config, model), expected, atol=1e-4, rtol=0)


def test_every_family_that_can_be_opened_is_compared():
    kinds = {check_folder(FOLDERS / name).family.name for name in MODELS}
    assert kinds == set(PRETRAINED)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_read_as_fp32(dtype, tmp_path):
    folder = FOLDERS / "gpt2"
    weights = {k: v.to(dtype) for k, v in load_file(folder / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    _checked, model = opened(tmp_path)
    table = model.get_parameter("tgt_embedding.table.weight")
    assert table.dtype == torch.float32
    assert torch.equal(table, weights["transformer.wte.weight"].float())


def test_tied_weights_stay_one():
    _checked, model = opened(FOLDERS / "gpt2")
    assert model.output.weight is model.tgt_embedding.table.weight
    _checked, model = opened(FOLDERS / "gpt2-untied")
    assert model.output.weight is not model.tgt_embedding.table.weight
