"""Opened folders are equal to the models of Transformers that were saved in them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import ANSWER, FOLDERS, MODELS, answer, save
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.pretrained.families import PRETRAINED
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.pretrained.settings import Settings

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
    stored = load_file(FOLDERS / name / "model.safetensors")
    used = {one for names in checked.sources.values() for one in names}
    assert checked.n_parameters == sum(stored[one].numel() for one in used)


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


DEFAULTS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "activation_function": "gelu_new",
        "add_cross_attention": False,
        "attn_pdrop": 0.1,
        "bos_token_id": 50256,
        "embd_pdrop": 0.1,
        "eos_token_id": 50256,
        "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2",
        "n_embd": 768,
        "n_head": 12,
        "n_inner": None,
        "n_layer": 12,
        "n_positions": 1024,
        "pad_token_id": None,
        "reorder_and_upcast_attn": False,
        "resid_pdrop": 0.1,
        "scale_attn_by_inverse_layer_idx": False,
        "scale_attn_weights": True,
        "tie_word_embeddings": True,
        "vocab_size": 50257,
    },
    "llama": {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 32,
        "pad_token_id": None,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": False,
        "vocab_size": 32000,
    },
    "bert": {
        "add_cross_attention": False,
        "attention_probs_dropout_prob": 0.1,
        "bos_token_id": None,
        "classifier_dropout": None,
        "eos_token_id": None,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "is_decoder": False,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "model_type": "bert",
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
    "vit": {
        "attention_probs_dropout_prob": 0.0,
        "encoder_stride": 16,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "hidden_size": 768,
        "image_size": 224,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-12,
        "model_type": "vit",
        "num_attention_heads": 12,
        "num_channels": 3,
        "num_hidden_layers": 12,
        "patch_size": 16,
        "pooler_act": "tanh",
        "pooler_output_size": 768,
        "qkv_bias": True,
    },
    "t5": {
        "classifier_dropout": 0.0,
        "d_ff": 2048,
        "d_kv": 64,
        "d_model": 512,
        "dense_act_fn": "relu",
        "dropout_rate": 0.1,
        "eos_token_id": 1,
        "feed_forward_proj": "relu",
        "is_decoder": False,
        "is_encoder_decoder": True,
        "is_gated_act": False,
        "layer_norm_epsilon": 1e-06,
        "model_type": "t5",
        "num_decoder_layers": 6,
        "num_heads": 8,
        "num_layers": 6,
        "pad_token_id": 0,
        "relative_attention_max_distance": 128,
        "relative_attention_num_buckets": 32,
        "scale_decoder_outputs": True,
        "tie_word_embeddings": True,
        "vocab_size": 32128,
    },
}
"""What Transformers 5.23 writes into config.json where nothing is chosen."""
COUNTS = {
    "gpt2": 124_439_808,
    "llama": 6_738_415_616,
    "bert": 109_482_240,
    "vit": 86_567_656,
    "t5": 60_506_624,
}
"""Parameters of such models, as published: of a ViT with 1,000 classes."""


@pytest.mark.parametrize("name", PRETRAINED)
def test_what_transformers_writes_by_default_is_a_model_of_the_published_size(name):
    config = DEFAULTS[name] | ({"num_labels": 1000} if name == "vit" else {})
    plan = PRETRAINED[name].plan(Settings(config), {"pooler.dense.weight", "classifier.weight"})
    with init_on_meta():
        model = build_model(plan.model, plan.shape)
    assert sum(one.numel() for one in model.parameters()) == COUNTS[name]


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
