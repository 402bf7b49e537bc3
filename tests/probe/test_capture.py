"""Capture: what is kept, and what is computed for it."""

import pytest
import torch

from tests.models.variants import text_batch, text_model
from tfm_core.anatomy.names import names_of
from tfm_core.layers import attention
from tfm_core.probe.capture import capture

ONE = "decoder.layers.1.cross_attention"


@pytest.fixture
def model():
    return text_model("encoder-decoder", n_encoder_layers=2, n_decoder_layers=3).eval()


@pytest.fixture
def computed(monkeypatch):
    """The shapes of the maps that are computed."""
    shapes = []

    def counted(*args, real=attention.masked_softmax):
        shapes.append(tuple(args[0].shape))
        return real(*args)

    monkeypatch.setattr(attention, "masked_softmax", counted)
    return shapes


def test_weights_are_computed_only_in_the_layers_that_are_asked_for(model, computed):
    inputs = text_batch()
    with capture(model, only={"weights", "mask"}) as everything:
        logits = model(*inputs)
    assert len(computed) == len(everything.of("weights")) == 2 + 2 * 3
    computed.clear()
    with capture(model, only={"weights", "mask"}, modules={ONE}) as cache:
        found = model(*inputs)
    assert computed == [tuple(cache[f"{ONE}.weights"].shape)]
    assert set(cache) == {f"{ONE}.weights", f"{ONE}.mask"}
    torch.testing.assert_close(found, logits)
    torch.testing.assert_close(cache[f"{ONE}.weights"], everything[f"{ONE}.weights"])


@pytest.mark.parametrize("only", [{"residual"}, {"hidden", "input"}, {"projected_key"}])
def test_no_weights_are_computed_where_nobody_keeps_them(model, computed, only):
    with capture(model, only=only) as cache:
        model(*text_batch())
    assert computed == []
    assert {name.rpartition(".")[2] for name in cache} == only


def test_everything_is_kept_where_nothing_is_said(model, computed):
    with capture(model) as cache:
        model(*text_batch())
    assert len(computed) == len(cache.of("weights")) == len(cache.of("scores"))


@pytest.mark.parametrize(
    ("family", "settings", "start"),
    [
        ("decoder-only", {}, "blocks.0."),
        ("decoder-only", {"position": "rotary", "n_kv_heads": 1}, "blocks.1."),
        ("encoder-only", {}, "blocks.0."),
        ("encoder-decoder", {}, "encoder.0."),
        ("encoder-decoder", {}, "decoder.0."),
    ],
)
def test_names_of_transformer_lens_name_what_they_name_there(family, settings, start):
    model = text_model(family, norm_first=True, **settings).eval()
    with capture(model) as cache:
        model(*text_batch())

    def of(hook):
        return cache[f"{start}{hook}"]

    pattern, z = of("attn.hook_pattern"), of("attn.hook_z")
    torch.testing.assert_close(of("attn.hook_attn_scores").softmax(-1), pattern)
    torch.testing.assert_close(torch.einsum("bhqk,bkhd->bqhd", pattern, of("attn.hook_v")), z)
    assert of("attn.hook_q").shape == of("attn.hook_rot_q").shape == z.shape
    stack = {"decoder-only": "decoder", "encoder-only": "encoder"}.get(family, start[:7])
    block = f"{stack}.layers.{start.split('.')[1]}"
    attention = model.get_submodule(f"{block}.self_attention")
    with torch.no_grad():
        out = attention.out_projection(z.flatten(2))
    torch.testing.assert_close(of("hook_attn_out"), out)
    torch.testing.assert_close(of("hook_resid_pre") + out, of("hook_resid_mid"))
    last = of("hook_resid_mid")
    if start == "decoder.0.":
        cross = torch.einsum(
            "bhqk,bkhd->bqhd", of("cross_attn.hook_pattern"), of("cross_attn.hook_v")
        )
        torch.testing.assert_close(of("cross_attn.hook_z"), cross)
        last = last + of("hook_cross_attn_out")
    torch.testing.assert_close(last + of("hook_mlp_out"), of("hook_resid_post"))
    ours = names_of(family, f"{block}.self_attention").transformer_lens
    assert ours == (f"{start}attn",)


@pytest.mark.parametrize(
    "name", ["blocks.0.attn.hook_result", "blocks.9.attn.hook_pattern", "blocks.x", "weights"]
)
def test_other_names_are_no_names(model, name):
    with capture(model) as cache:
        model(*text_batch())
    with pytest.raises(KeyError):
        cache[name]


def test_a_block_that_norms_sums_has_no_residual_stream_to_name():
    model = text_model("decoder-only", norm_first=False).eval()
    with capture(model) as cache:
        model(*text_batch())
    assert cache["blocks.0.attn.hook_pattern"].shape[1] == cache["blocks.0.attn.hook_z"].shape[2]
    with pytest.raises(KeyError):
        cache["blocks.0.hook_resid_post"]
