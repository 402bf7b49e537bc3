"""A model of text with sizes of one's own: what changes, and what cannot be."""

import pytest

from tfm_core.choices.presets import PRESETS
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.free_sizes import FreeSizes, offered, resized, sizes_of
from tfm_core.facts.parameter_table import parameter_table


def known(name):
    return of_experiment(PRESETS[name].experiment, name)


def total(one):
    return parameter_table(one.model, one.shape).total


def test_a_word_costs_its_rows_and_other_sizes_change_nothing():
    base, d = known("translate"), 64
    own = sizes_of(base)
    wider = resized(base, FreeSizes(src_vocabulary=own.src_vocabulary + 3))
    assert total(wider) - total(base) == 3 * d
    wider = resized(base, FreeSizes(tgt_vocabulary=own.tgt_vocabulary + 3))
    assert total(wider) - total(base) == 3 * (d + d + 1)
    longer = resized(base, FreeSizes(src_len=own.src_len + 5, tgt_len=7))
    assert (longer.src_len, longer.tgt_len) == (own.src_len + 5, 7)
    assert total(longer) == total(base)
    base = known("translate")
    assert resized(base, FreeSizes()) is base
    assert resized(base, sizes_of(base)) is base
    base = known("gpt-grammar")
    with pytest.raises(ValueError, match="65 tokens need 65 rows"):
        resized(base, FreeSizes(tgt_len=65))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("translate", ("src_vocabulary", "tgt_vocabulary", "src_len", "tgt_len")),
        ("gpt-grammar", ("tgt_vocabulary", "tgt_len")),
        ("sentiment", ("src_vocabulary", "src_len")),
        ("vit-digits", ()),
        ("captions", ()),
    ],
)
def test_each_model_has_the_sizes_that_it_reads_and_writes(name, names):
    base = known(name)
    assert offered(base.shape) == names
    new = resized(base, FreeSizes(501, 502, 11, 12))
    assert (new is base) is (not names)
    if names:
        parameter_table(new.model, new.shape)
