"""What others call what a step of the walk is about."""

import pytest

from tfm_core.anatomy.names import SCHEME_LABELS
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.trace.shown import called
from tfm_core.trace.subject import by_shape
from tfm_core.trace.trace import trace


def names_in(name, scheme, layer=0):
    known = ARCHITECTURES[name]
    steps = trace(by_shape(known.model, known.shape, batch=2, src_len=5, tgt_len=5), layer=layer)
    return {step.name: called(step, known.model, known.shape, scheme, layer) for step in steps}


def test_steps_and_tensors_have_the_words_of_notebooks_and_blocks():
    named = names_in("text-transformer", "notebook")
    assert named["scores"]["scores"] == ("energy",)
    into = ("attn.W_Q", "attn.W_K", "attn.W_V")
    assert named["queries-keys-values"]["in_projection"] == into
    assert named["cross-attention"]["mask"] == ("make_src_mask",)
    assert named["masks"]["mask"] == ("make_src_mask", "make_tgt_mask")
    assert named["embedding"]["table"] == ("enc_embed", "dec_embed")
    assert named["decoder-attention"]["mask"] == ("make_tgt_mask",)
    assert named["heads"] == {
        "d_model": ("embed_size",),
        "H": ("num_heads",),
        "d_head": ("head_dim",),
    }
    assert named["logits"]["output"] == ("fc_out",)
    named = names_in("gpt2-small", "transformer-lens", layer=3)
    assert named["softmax"]["weights"] == ("blocks.3.attn.hook_pattern",)
    assert named["merge"]["out_projection"] == ("blocks.3.attn.W_O",)
    assert names_in("bert-base", "hugging-face", 2)["softmax"]["weights"] == ("attentions[2]",)
    assert not any(names_in("text-vit", "transformer-lens").values())


@pytest.mark.parametrize("scheme", SCHEME_LABELS)
@pytest.mark.parametrize("name", ["text-vit", "text-encoder", "bert-base", "gpt2-small"])
def test_no_step_has_a_name_that_is_ours_or_empty(name, scheme):
    for found in names_in(name, scheme).values():
        assert not found or scheme != "ours"
        assert all(theirs and all(theirs) for theirs in found.values())
