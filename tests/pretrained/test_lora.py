"""LoRA's matrices start as nothing, are all that is trained, and merge into what they change."""

from __future__ import annotations

import pytest
import torch

from tests.pretrained.models_of_transformers import FOLDERS, IDS
from tfm_core.pretrained.lora import add_lora, merge_lora, merged_state
from tfm_core.pretrained.model import check_folder, load_model

pytestmark = pytest.mark.quick


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
