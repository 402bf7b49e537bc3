"""Adapters of low rank: those of PEFT, read and written, and trained while all else is frozen."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.adapters_of_peft import ADAPTERS, TARGETS, answer_with, base
from tests.pretrained.models_of_transformers import ANSWER, FOLDERS, IDS, answer
from tfm_core.pretrained.adapters import (
    CONFIG,
    WEIGHTS,
    Lora,
    add_adapters,
    load_adapters,
    merge_adapters,
    save_adapters,
)
from tfm_core.pretrained.folder import Unopenable
from tfm_core.pretrained.model import check_folder, load_model

pytestmark = pytest.mark.quick


def opened(name):
    checked = check_folder(FOLDERS / name)
    return checked, load_model(checked)


@pytest.mark.parametrize("name", TARGETS)
def test_adapters_of_peft_answer_here_as_there(name, tmp_path):
    checked, model = opened(name)
    plain = answer(checked.config, model)
    lora = load_adapters(model, checked.family, ADAPTERS / name)
    assert set(lora.targets) == set(TARGETS[name])
    expected = load_file(ADAPTERS / name / ANSWER)["answer"]
    assert (plain - expected).abs().max() > 0.1  # else the adapters would do nothing
    torch.testing.assert_close(answer(checked.config, model), expected, atol=1e-5, rtol=1e-5)
    save_adapters(model, checked.family, lora, tmp_path)
    written = load_file(tmp_path / WEIGHTS)
    torch.testing.assert_close(written, load_file(ADAPTERS / name / WEIGHTS), rtol=0, atol=0)
    merge_adapters(model)
    torch.testing.assert_close(answer(checked.config, model), expected, atol=1e-5, rtol=1e-5)
    assert model.state_dict().keys() == opened(name)[1].state_dict().keys()


@pytest.mark.skipif(find_spec("peft") is None, reason="PEFT is not installed")
@pytest.mark.parametrize("name", TARGETS)
def test_peft_reads_adapters_of_ours(name, tmp_path):
    plain = base(name)
    import peft  # which imports Transformers: behind what mends that

    checked, model = opened(name)
    lora = load_adapters(model, checked.family, ADAPTERS / name)
    save_adapters(model, checked.family, lora, tmp_path)
    theirs = peft.PeftModel.from_pretrained(plain, tmp_path).eval()
    torch.testing.assert_close(
        answer_with(theirs, name), answer(checked.config, model), atol=1e-5, rtol=1e-5
    )


def test_new_adapters_change_nothing_and_are_all_that_is_trained():
    checked, model = opened("gpt2")
    plain = model(IDS[:, :0], IDS)
    frozen = {name: one.clone() for name, one in model.named_parameters()}
    names = add_adapters(model, checked.family, Lora(2, 4.0, ("c_attn",)))
    assert len(names) == checked.config.n_layers
    assert torch.equal(model(IDS[:, :0], IDS), plain)
    trained = [one for one in model.parameters() if one.requires_grad]
    d_model = checked.config.d_model
    assert sum(one.numel() for one in trained) == len(names) * 2 * (d_model + 3 * d_model)
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


def test_a_layer_that_is_not_there_is_said():
    checked, model = opened("gpt2")
    with pytest.raises(ValueError, match="q_proj"):
        add_adapters(model, checked.family, Lora(2, 4.0, ("q_proj",)))


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(ADAPTERS / "gpt2", tmp_path / "adapters")


def refusal(folder):
    checked, model = opened("gpt2")
    before = model(IDS[:, :0], IDS)
    with pytest.raises(Unopenable) as caught:
        load_adapters(model, checked.family, folder)
    assert torch.equal(model(IDS[:, :0], IDS), before)
    assert all(one.requires_grad for one in model.parameters())
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"peft_type": "IA3"}, "IA3"),
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"r": 0}, "r is 0"),
        ({"r": "3"}, "r is 3"),
        ({"r": 4}, "lora_A"),
        ({"lora_alpha": None}, "lora_alpha"),
        ({"modules_to_save": ["wte"]}, "modules_to_save"),
        ({"rank_pattern": {"c_fc": 5}}, "rank_pattern"),
    ],
)
def test_adapters_of_another_kind_are_refused(folder, changes, word):
    values = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(values | changes))
    assert word in refusal(folder)


def test_tensors_that_do_not_fit_are_refused(folder):
    tensors = load_file(folder / WEIGHTS)
    name = min(tensors)

    def write(**changes):
        save_file(tensors | changes, folder / WEIGHTS)
        return refusal(folder)

    assert "elsewhere" in write(**{"base_model.model.elsewhere.lora_A.weight": torch.zeros(3, 12)})
    assert "lora_A" in write(**{name: torch.zeros(3, 13)})
    assert "NaN" in write(**{name: tensors[name] * float("nan")})
    save_file({key: one for key, one in tensors.items() if key != name}, folder / WEIGHTS)
    assert "lora_A" in refusal(folder)
    (folder / WEIGHTS).write_bytes(b"gone")
    assert WEIGHTS in refusal(folder)
    (folder / WEIGHTS).unlink()
    assert WEIGHTS in refusal(folder)
