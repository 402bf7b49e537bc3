"""A variant is whole or it is not there; a name is known or said to be unknown."""

import copy
import pickle
from dataclasses import dataclass, field

import pytest

from tfm_core import sentences
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.optimisers import OPTIMISERS
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.choices.variants.precisions import PRECISIONS
from tfm_core.choices.variants.record import Registry, UnknownVariant, Variant, resolve
from tfm_core.choices.variants.schedules import SCHEDULES
from tfm_core.choices.variants.stems import STEMS

pytestmark = pytest.mark.quick


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheese(Variant):
    holes: int
    layer: str
    smell: str | None = field(init=False)


WHOLE = {"name": "brie", "source": "Meaux", "holes": 0, "layer": "math:sqrt"}
WORDS = "## Cheese.brie\n- label: Brie\n- help: Soft.\n\n## Cheese.edam\n- label: Edam\n"


def test_records_that_lack_a_part_or_words_or_a_name_of_their_own_are_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sentences, "CONTENT_DIR", tmp_path)
    (tmp_path / "en" / "choices").mkdir(parents=True)
    (tmp_path / "en" / "choices" / "variants.md").write_text(WORDS)
    for part in WHOLE:
        parts = {name: value for name, value in WHOLE.items() if name != part}
        with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{part}'"):
            Cheese(**parts)
    with pytest.raises(ValueError, match="Cheese 'brie' lacks its source: every part of a variant"):
        Cheese(**{**WHOLE, "source": ""})
    with pytest.raises(KeyError, match="help"):
        Cheese(**{**WHOLE, "name": "edam"})
    with pytest.raises(KeyError, match=r"Cheese\.gouda"):
        Cheese(**{**WHOLE, "name": "gouda"})
    brie = Cheese(**WHOLE)
    assert (brie.label, brie.help, brie.smell) == ("Brie", "Soft.", None)
    assert copy.deepcopy(brie) == brie == pickle.loads(pickle.dumps(brie))
    assert resolve(brie.layer)(9.0) == 3.0
    with pytest.raises(UnknownVariant, match=r"There is no cheese named 'edam'; there are brie\."):
        Registry("cheese", brie)["edam"]
    with pytest.raises(ValueError, match="two variants of cheese named 'brie'"):
        Registry("cheese", brie, brie)


@pytest.mark.parametrize(
    "registry",
    [OPTIMISERS, SCHEDULES, PRECISIONS, NORMS, ACTIVATIONS, STEMS, POOLINGS],
    ids=lambda each: each.subject,
)
def test_every_variant_stands_under_its_own_name_with_help_and_source(registry):
    for name, variant in registry.items():
        assert name == variant.name
        assert variant.help.endswith(".")
        assert variant.source
