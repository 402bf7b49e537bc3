"""Every block of the diagram has its code, and all parameters stand in exactly one block."""

from collections import Counter

import pytest

from tests.inspect.diagram.test_graph import LOOK, MODELS
from tests.models.variants import CAPTION_SHAPE, SMALL, text_config
from tfm_core.config import MODEL_CONFIGS
from tfm_core.config.shape import TextShape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.diagram.graph import diagram
from tfm_core.inspect.diagram.parts import code_of, parameters_of
from tfm_core.inspect.equations.model import equations
from tfm_core.inspect.walk.subject import walk_index
from tfm_core.variants.positions import POSITIONS, POSITIONS_OF_WORDS

SHARED = {"encoder.relative", "decoder.relative"}  # by all blocks of a stack


def parts(config, shape, opened=range(0)):
    return diagram(config, shape, LOOK, src_len=7, tgt_len=5, opened=opened).nodes


def owned(found, config, shape):
    """Return the parameters of all blocks, each row once."""
    rows = {row.module: row for one in found.values() for row in parameters_of(one, config, shape)}
    return sum(row.n_parameters for row in rows.values())


@pytest.mark.parametrize("opened", [range(0), range(9), range(1)], ids=["folded", "all", "first"])
@pytest.mark.parametrize(("family", "settings", "shape"), MODELS)
def test_blocks_hold_all_parameters_and_have_code_equations_and_steps(
    family, settings, shape, opened
):
    if family == "vit":
        config = MODEL_CONFIGS[family].parse({**SMALL, **settings})
    else:
        config = text_config(family, **settings)
    found = parts(config, shape, opened)
    assert owned(found, config, shape) == parameter_table(config, shape).total
    rows = Counter(
        row.module for one in found.values() for row in parameters_of(one, config, shape)
    )
    assert {name for name, n in rows.items() if n > 1} <= SHARED
    known = equations(config, shape)
    for one in found.values():
        assert code_of(one, config, shape)
        assert set(one.equations) <= set(known)
    steps = {entry.name for entry in walk_index(config, shape)}
    for one in found.values():
        assert steps & set(one.steps), one.title


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_blocks_of_published_models_hold_all_parameters(name):
    known = ARCHITECTURES[name]
    found = parts(known.model, known.shape)
    assert owned(found, known.model, known.shape) == parameter_table(known.model, known.shape).total


@pytest.mark.parametrize(
    ("opened", "frames", "boxes"),
    [(range(0), 1, 0), (range(7), 7, 0), (range(2, 4), 2, 2), (range(0, 1), 1, 1)],
)
def test_a_few_blocks_are_opened_and_those_around_them_share_a_box(opened, frames, boxes):
    config = MODEL_CONFIGS["encoder-only"].parse({**SMALL, "n_layers": 7})
    drawn = diagram(config, TextShape(17, 17), LOOK, src_len=7, tgt_len=7, opened=opened)
    assert drawn.dot.count("subgraph") == frames
    assert sum("-" in name.rpartition(".")[2] for name in drawn.nodes) == boxes


@pytest.mark.parametrize(
    ("node", "steps"),
    [
        ("image", {"picture"}),
        ("stem", {"patches", "patch-projection"}),
        ("positions", {"positions"}),
        ("encoder.layers.1.feed_forward", {"feed-forward"}),
        ("tgt ids", {"tokens", "masks"}),
        ("tgt_positions", {"word-positions"}),
        ("decoder.layers.2.self_attention", {"decoder-attention"}),
        ("decoder.layers.2.cross_attention", {"cross-attention", "decoder-add-norm"}),
        ("decoder.layers.2.feed_forward", {"decoder-feed-forward", "logits"}),
        ("output", {"logits"}),
        ("logits", {"whole"}),
    ],
)
def test_a_block_of_a_captioner_leads_to_its_own_steps_and_its_own_block(node, steps):
    config = text_config("captioner", patch_size=2, n_decoder_layers=3)
    one = parts(config, CAPTION_SHAPE, range(9))[node]
    assert {entry.name for entry in walk_index(config, CAPTION_SHAPE)} & set(one.steps) == steps
    layer = node.split(".")[2] if "." in node else None
    assert one.layer == (None if layer is None else int(layer))


def test_a_box_of_closed_blocks_leads_to_the_step_of_its_own_stack():
    config = text_config("encoder-decoder", n_encoder_layers=3, n_decoder_layers=3)
    found = parts(config, TextShape(17, 19), range(1))
    assert found["encoder.layers.1-2"].steps == ("encoder-stack",)
    assert found["decoder.layers.1-2"].steps == ("logits",)


@pytest.mark.parametrize("position", POSITIONS_OF_WORDS)
def test_an_attention_shows_the_code_of_positions_that_act_in_it(position):
    found = parts(text_config("encoder-decoder", position=position), TextShape(17, 19))
    kind = POSITIONS[position]
    functions = {function.name for function in kind.functions}
    own, cross = (
        functions & set(found[f"decoder.layers.0.{name}"].code)
        for name in ("self_attention", "cross_attention")
    )
    assert own == (functions if kind.is_inside else set())
    assert not cross


@pytest.mark.parametrize(("norm", "expected"), [("layernorm", ("norm",)), ("none", ())])
def test_segments_stand_in_the_equation_of_a_norm_that_they_have(norm, expected):
    shape = TextShape(17, 17, head="pooler", n_segments=2)
    found = parts(text_config("encoder-only", norm=norm), shape)
    assert found["segments"].equations == expected
