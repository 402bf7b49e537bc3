"""Adapters: LoRA's matrices, read from PEFT's files and built as its models."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import FOLDERS, IDS
from tfm_core.data.opened_folder import Unopenable
from tfm_core.pretrained.lora import add_lora, merge_lora, merged_state
from tfm_core.pretrained.model import check_folder, load_model

pytestmark = pytest.mark.quick


PLAIN = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "base_model_name_or_path": "some/gpt2"}

MODULE = "transformer.h.1.attn.c_attn"

A, B = (f"base_model.model.{MODULE}.lora_{one}.weight" for one in "AB")


@pytest.fixture
def adapter(tmp_path):
    shutil.copytree(FOLDERS / "gpt2", tmp_path / "gpt2")
    folder = tmp_path / "mine"
    folder.mkdir()
    return written(folder)


def written(folder, tensors=None, **settings):
    chosen = PLAIN | {"fan_in_fan_out": True} | settings
    (folder / "adapter_config.json").write_text(json.dumps(chosen))
    tensors = tensors or {A: torch.randn(2, 12), B: torch.randn(36, 2)}
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize(("is_rooted", "scale"), [(False, 3), (True, 6 / 2**0.5)])
def test_the_changes_are_in_the_matrices(adapter, is_rooted, scale):
    written(adapter, use_rslora=is_rooted)
    changes = load_file(adapter / "adapter_model.safetensors")
    checked = check_folder(adapter)
    base = check_folder(adapter.parent / "gpt2")
    assert checked.folder.opened == adapter
    name = f"{MODULE}.weight"
    expected = base.folder.read(name) + scale * (changes[B] @ changes[A]).T
    torch.testing.assert_close(checked.folder.read(name), expected)
    other = "transformer.h.0.attn.c_attn.weight"
    assert torch.equal(checked.folder.read(other), base.folder.read(other))


def test_its_base_lies_inside_it_or_both_in_one_folder(adapter, tmp_path):
    assert check_folder(tmp_path).folder.opened == adapter
    shutil.move(tmp_path / "gpt2", adapter / "gpt2")
    assert check_folder(adapter).folder.changes


@pytest.mark.parametrize("base", ["some/gpt3", "..", "/", "", None, 3])
def test_without_its_base_it_says_what_it_needs(adapter, base):
    written(adapter, base_model_name_or_path=base)
    with pytest.raises(Unopenable, match=f"needs its base model, {base}"):
        check_folder(adapter)


@pytest.mark.parametrize(
    ("settings", "tensors"),
    [
        ({"peft_type": "IA3"}, None),
        ({"r": 0}, None),
        ({"r": 3}, None),
        ({"lora_alpha": "6"}, None),
        ({"use_dora": True}, None),
        ({"init_lora_weights": "pissa"}, None),
        ({"modules_to_save": ["score"]}, None),
        ({"rank_pattern": {"c_attn": 4}}, None),
        ({"fan_in_fan_out": False}, None),
        ({}, {A: torch.zeros(2, 12)}),
        ({}, {B: torch.zeros(36, 2)}),
        ({}, {A: torch.zeros(2, 11), B: torch.zeros(36, 2)}),
        ({}, {A: torch.zeros(2), B: torch.zeros(36, 2)}),
        ({}, {A: torch.zeros(2, 12, dtype=torch.int8), B: torch.zeros(36, 2)}),
        ({}, {A.replace("c_attn", "none"): torch.zeros(2, 12), B: torch.zeros(36, 2)}),
        ({}, {"base_model.model.lm_head.weight": torch.zeros(37, 12)}),
    ],
)
def test_what_is_no_plain_lora_is_refused(adapter, settings, tensors):
    written(adapter, tensors, **settings)
    with pytest.raises(Unopenable, match="merge_and_unload"):
        check_folder(adapter)


def opened(name):
    checked = check_folder(FOLDERS / name)
    return checked.config, load_model(checked)


def answer(model):
    return model(IDS[:, :0], IDS)


@pytest.mark.parametrize(
    ("name", "is_one_matrix"), [("gpt2", True), ("gpt2", False), ("llama-grouped", False)]
)
def test_new_matrices_change_nothing_and_are_all_that_is_trained(name, is_one_matrix):
    config, model = opened(name)
    plain, names = answer(model), model.state_dict().keys()
    frozen = {name: one.clone() for name, one in model.named_parameters()}
    add_lora(model, rank=2, alpha=4.0, is_one_matrix=is_one_matrix)
    assert torch.equal(answer(model), plain)
    trained = [one for one in model.parameters() if one.requires_grad]
    q, kv, d_in = config.d_q, config.d_kv, config.d_model
    rows = [q + 2 * kv] if is_one_matrix else [q, kv]
    assert sum(one.numel() for one in trained) == config.n_layers * sum(
        2 * (d_in + d_out) for d_out in rows
    )
    optimizer = torch.optim.Adam(trained, lr=0.05)
    losses = []
    for _ in range(30):
        logits = model(IDS[:, :0], IDS[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, IDS[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.5
    after = dict(model.named_parameters())
    for name, before in frozen.items():
        kept = f"{name.removesuffix('weight')}parametrizations.weight.original"
        assert torch.equal(after[kept if kept in after else name], before)
    expected, merged = answer(model), merged_state(model)
    merge_lora(model)
    torch.testing.assert_close(answer(model), expected, atol=1e-5, rtol=1e-5)
    assert model.state_dict().keys() == names == merged.keys()
    torch.testing.assert_close(dict(model.state_dict()), merged)
