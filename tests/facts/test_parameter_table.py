"""The parameter table against the model itself."""

import tracemalloc

import pytest
import torch
from hypothesis import given, settings

from tests.anatomy.configurations import models
from tfm_core.data.shape import data_shape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.source.file import source_code
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.presets import PRESETS


@given(models())
@settings(max_examples=60, deadline=None)
def test_rows_and_formulas_add_up_to_the_parameters_of_every_variant(chosen):
    table = parameter_table(*chosen)
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


def test_the_tables_of_published_models_agree_to_the_last_digit():
    for name, known in ARCHITECTURES.items():
        table = parameter_table(known.model, known.shape)
        assert known.n_parameters in (None, table.total), name
        assert sum(row.n_parameters for row in table.folded) == table.total


def test_a_tied_weight_is_counted_once_and_says_whose_it_is():
    known = ARCHITECTURES["gpt2-small"]
    (output,) = [r for r in parameter_table(known.model, known.shape).rows if r.module == "output"]
    assert output.n_parameters == 0
    assert output.tied_to == "token_embedding.table.weight"
    assert output.formula == "0 (tied)"


def test_equal_blocks_are_folded():
    known = ARCHITECTURES["gpt2-xl"]
    folded = {row.module: row for row in parameter_table(known.model, known.shape).folded}
    row = folded["decoder.layers.0–47.feed_forward.up"]
    assert row.repeats == 48
    assert row.formula == "48 x (1600 x 6400 + 6400)"


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
