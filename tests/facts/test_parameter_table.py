"""The parameter table against the model itself."""

import tracemalloc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.anatomy.configurations import models
from tfm_core.anatomy.names import SCHEME_LABELS
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import named_parameters, parameter_table
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.trace.source.file import source_code


@given(models(), st.sampled_from(list(SCHEME_LABELS)))
def test_rows_and_formulas_add_up_to_the_parameters_of_every_variant(chosen, scheme):
    table = parameter_table(*chosen, scheme)
    with init_on_meta():
        model = build_model(*chosen)
    assert table.total == sum(parameter.numel() for parameter in model.parameters())
    kinds = {type(module).__name__ for module in model.modules()}
    assert {row.kind for row in table.rows} <= kinds
    for rows in (table.rows, table.folded):
        assert sum(row.n_parameters for row in rows) == table.total
        assert sum(row.share for row in rows) == pytest.approx(1)
        for row in rows:
            formula = row.formula.replace(" (tied)", "").replace("x", "*")
            assert eval(formula or "0") == row.n_parameters, row


def test_tied_weights_are_counted_once_and_matrices_have_a_row_each():
    known = ARCHITECTURES["gpt2-small"]
    (output,) = [r for r in parameter_table(known.model, known.shape).rows if r.module == "output"]
    assert output.n_parameters == 0
    assert output.tied_to == "token_embedding.table.weight"
    assert output.formula == "0 (tied)"
    known = ARCHITECTURES["gpt2-xl"]
    folded = {row.module: row for row in parameter_table(known.model, known.shape).folded}
    row = folded["decoder.layers.0–47.feed_forward.up"]
    assert row.repeats == 48
    assert row.formula == "48 x (1600 x 6400 + 6400)"
    known = ARCHITECTURES["mixtral-8x7b"]
    table = parameter_table(known.model, known.shape)
    assert (table.total, table.active) == (46_702_792_704, 12_879_925_248)
    folded = {row.module: row for row in table.folded}
    row = folded["decoder.layers.0–31.feed_forward.experts.0–7.up"]
    assert row.repeats == 32 * 8
    assert row.formula == "8 x (32 x (4096 x 14336))"
    rows = rows_of("text-korean", "notebook")
    for letter in "QKV":
        row = rows[f"encoder.layers.0.attn.W_{letter}"]
        assert (row.n_parameters, row.shape) == (262_144, "weight 512 x 512")
        assert row.here == "encoder.layers.0.self_attention.in_projection"
    assert rows["decoder.layers.5.addnorm3.norm"].here == "decoder.layers.5.feed_forward_norm"
    sliced = rows_of("text-vit", "notebook")
    assert sliced["encoder.layers.1.attn.k_mappings"].n_parameters == 2 * (4 * 4 + 4)
    assert rows_of("gpt2-small", "hugging-face")["transformer.h.0.attn.c_attn"].shape == (
        "weight 768 x 2304, bias 2304"  # Conv1D has its inputs first
    )


@pytest.mark.parametrize("name", ["gpt2-xl", "vit-h"])
def test_the_largest_tables_take_under_200_mb(name):
    known = ARCHITECTURES[name]
    parameter_table.cache_clear()
    tracemalloc.start()
    parameter_table(known.model, known.shape)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("gpt-grammar", "token_embedding.table", "output"),
        ("sentiment", "token_embedding.table", "output"),
        ("addition", "source_embedding.table", "output"),
        ("captions", "stem.convolution", "output"),
        ("translate", "src_embedding.table", "output"),
    ],
)
def test_a_table_has_the_names_of_its_family_as_the_generated_file_has(name, first, last):
    chosen = PRESETS[name].experiment
    shape = data_shape(chosen)
    modules = [row.module for row in parameter_table(chosen.model, shape).rows]
    assert (modules[0], modules[-1]) == (first, last)
    names = {"__name__": "generated"}
    exec(source_code(chosen.model, shape), names)
    with torch.device("meta"):
        theirs = names["Model"]().named_modules(remove_duplicate=False)
    own = [path for path, part in theirs if list(part.parameters(recurse=False))]
    assert sorted(own) == sorted(modules)


def rows_of(name, scheme):
    known = ARCHITECTURES[name]
    return {row.module: row for row in parameter_table(known.model, known.shape, scheme).rows}


def test_shapes_in_other_schemes_are_those_of_their_models():
    rows = rows_of("vit-b", "hugging-face")  # as Transformers 4.57 has them
    assert rows["vit.embeddings.cls_token"].shape == "1 x 1 x 768"
    assert rows["vit.embeddings.position_embeddings"].shape == "1 x 197 x 768"
    projection = rows["vit.embeddings.patch_embeddings.projection"]
    assert projection.shape == "weight 768 x 3 x 16 x 16, bias 768"
    assert rows_of("gpt2-small", "hugging-face")["transformer.wpe"].shape == "weight 1024 x 768"
    rows = rows_of("gpt2-small", "transformer-lens")
    assert rows["blocks.7.attn.W_V"].shape == "W_V 12 x 768 x 64, b_V 12 x 64"
    assert rows["blocks.7.attn.W_O"].shape == "W_O 12 x 64 x 768, b_O 768"
    assert rows["blocks.7.mlp.W_in"].shape == "W_in 768 x 3072, b_in 3072"
    assert rows["unembed.W_U"].shape == "W_U 768 x 50257"
    text = named_parameters(*(getattr(ARCHITECTURES["gpt2-small"], n) for n in ("model", "shape")),
                            "transformer-lens")  # fmt: skip
    assert "    attn\n      W_Q 12 x 768 x 64, b_Q 12 x 64\n" in text
    known = ARCHITECTURES["text-vit"]
    table = parameter_table(known.model, known.shape, "transformer-lens")
    assert {row.module for row in table.folded} == {""}
    assert sum(row.n_parameters for row in table.folded) == table.total == 1_770
    assert not named_parameters(known.model, known.shape, "transformer-lens")
