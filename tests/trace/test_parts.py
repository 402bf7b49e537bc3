"""The parts, the equations and the differences follow the settings."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.anatomy.configurations import config_of, samples
from tests.fresh import some, spelled
from tests.models.variants import CAPTION_SHAPE, SMALL, text_config
from tfm_core.choices.config import MODEL_CONFIGS
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.choices.variants.positions import POSITIONS, POSITIONS_OF_WORDS
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.differences import differences
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.trace.equations import equations
from tfm_core.trace.parts import code_of, name_of, open_parts, parameters_of
from tfm_core.trace.picture import picture, stages
from tfm_core.trace.subject import by_shape
from tfm_core.trace.trace import index

SHAPES = {"vit": ImageShape(6, 3, 5), "captioner": CAPTION_SHAPE}
PATCHES = {"vit": {"patch_size": 2}, "captioner": {"patch_size": 2}}


def sampled(seed):
    return [
        (family, {**PATCHES.get(family, {}), **settings}, SHAPES.get(family, TextShape(17, 19)))
        for family in MODEL_CONFIGS
        for settings in samples(family, rounds=2, seed=seed)
    ]


MODELS = some(sampled(0), sampled)


SHARED = {"encoder.relative", "decoder.relative"}  # by all blocks of a stack


def parts(config, shape):
    return open_parts(config, shape, src_len=7, tgt_len=5)


def owned(found, config, shape):
    """Return the parameters of all parts, each row once."""
    rows = {row.module: row for one in found.values() for row in parameters_of(one, config, shape)}
    return sum(row.n_parameters for row in rows.values())


def said(config, shape, part):
    return " ".join(parts(config, shape)[part].rows)


@pytest.mark.parametrize(("family", "settings", "shape"), MODELS, ids=spelled)
def test_every_part_holds_code_and_equations_and_every_stage_opens_one(family, settings, shape):
    config = config_of(family, settings)
    found, known = parts(config, shape), equations(config, shape)
    for one in known.values():
        assert one.latex.count("{") == one.latex.count("}")
        assert one.latex.count(r"\left(") == one.latex.count(r"\right)")
    steps = set(index(config, shape))
    assert owned(found, config, shape) == parameter_table(config, shape).total
    rows = Counter(
        row.module for one in found.values() for row in parameters_of(one, config, shape)
    )
    assert {name for name, n in rows.items() if n > 1} <= SHARED
    for one in found.values():
        assert code_of(one, config, shape)
        assert set(one.equations) <= set(known)
        assert steps & set(one.steps), one.title
    shown = picture(by_shape(config, shape, batch=1, src_len=7, tgt_len=5))
    opened = {name_of(stage) for _lane, _place, stage in stages(shown)}
    assert opened <= set(found)
    layers = {name for name in found if name.endswith(("_attention", "feed_forward"))}
    assert layers <= opened


def test_captioners_have_equations_of_patches_and_words():
    config = MODEL_CONFIGS["captioner"].parse({**SMALL, "patch_size": 2})
    latex = equations(config, CAPTION_SHAPE)
    assert r"\mathrm{patch}_t" in latex["embedding"].latex
    assert "E_{w_t}" in latex["embedding"].latex
    assert "CrossAttention" in latex["block"].latex


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_parts_of_published_models_hold_all_parameters(name):
    known = ARCHITECTURES[name]
    found = parts(known.model, known.shape)
    assert owned(found, known.model, known.shape) == parameter_table(known.model, known.shape).total


def test_equations_code_and_differences_follow_the_settings():
    shape = TextShape(17, 19)

    def latex(part, **settings):
        config = MODEL_CONFIGS["encoder-decoder"].parse({**SMALL, **settings})
        return equations(config, shape)[part].latex

    assert r"x + \mathrm{SelfAttention}(\mathrm{Norm}(x))" in latex("block", norm_first=True)
    assert r"\mathrm{Norm}(x + \mathrm{SelfAttention}(x))" in latex("block", norm_first=False)
    assert r"\max" in latex("feed-forward", activation="relu")
    assert r"\odot" in latex("feed-forward", activation="swiglu")
    assert "R_i" in latex("attention", position="rotary")
    assert "m_h" in latex("attention", position="alibi")
    assert r"\beta(j - i)" in latex("attention", position="t5-bias")
    assert "P_t" in latex("embedding", position="learned")
    assert r"\sqrt{4}" in latex("attention")
    for position in POSITIONS_OF_WORDS:
        found = parts(text_config("encoder-decoder", position=position), TextShape(17, 19))
        kind = POSITIONS[position]
        functions = {function.name for function in kind.functions}
        own, cross = (
            functions & set(found[f"decoder.layers.0.{name}"].code)
            for name in ("self_attention", "cross_attention")
        )
        assert own == (functions if kind.is_inside else set()), position
        assert not cross, position
    words = " ".join(differences(ARCHITECTURES["gpt2-small"], ARCHITECTURES["gpt2-medium"]))
    assert "d_model: 1,024 instead of 768." in words
    assert "Layers: 24 instead of 12." in words
    assert "2.85 times the parameters: 354,823,168 instead of 124,439,808." in words
    base, bert, gpt = (ARCHITECTURES[name] for name in ("transformer-base", "bert-base", "gpt2-xl"))
    words = " ".join(differences(base, bert))
    assert "512 instead of 64" not in words
    table = "Longest sequence: BERT-base has 512 positions; Transformer base (2017) has no limit."
    assert table in words
    assert table in " ".join(differences(bert, base))
    assert "Longest sequence: 1,024 instead of 512." in differences(bert, gpt)
    assert not [s for s in differences(base, ARCHITECTURES["transformer-big"]) if "Longest" in s]
    wetter = replace(base, model=base.model.replace(dropout=0.2))
    assert differences(base, wetter) == [
        "Dropout: 0.2 instead of 0.1.",
        f"It has the same number of parameters: {63_082_496:,}.",
        "A full example takes the same arithmetic.",
    ]


MISTAKES = [  # settings, then what the equations of attention and of a block say of them
    ({"mistakes": "no-scale"}, "attention", r"\left(q_i^\top k_j\right)"),
    ({"mistakes": "scaled-by-d-model"}, "attention", r"\sqrt{12}"),
    ({"mistakes": "mask-transposed"}, "attention", r"j \ge i"),
    ({"mistakes": "mask-transposed", "window": 2}, "attention", r"i \le j \le i + 2"),
    ({"window": 3, "full_every": 2}, "attention", r"\text{, except in layers } 2, 4, \dots"),
    ({"sink": "learned"}, "attention", r"{e^{s_h} + \sum_{j \le i} e^{z_{ij}}}"),
    ({"mistakes": "no-residuals"}, "block", r"x &\leftarrow \mathrm{FFN}(\mathrm{Norm}(x))"),
    ({"mistakes": "residual-from-normed"}, "block", r"x &\leftarrow x + \mathrm{FFN}(x)"),
    ({"norm": "none"}, "block", r"x &\leftarrow x + \mathrm{FFN}(x)"),
]


@pytest.mark.parametrize(("settings", "part", "latex"), MISTAKES)
def test_equations_show_a_mistake(settings, part, latex):
    shape = TextShape(17, 19)
    right, wrong = (text_config("decoder-only", **more) for more in ({}, settings))
    assert latex in equations(wrong, shape)[part].latex
    assert latex not in equations(right, shape)[part].latex


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mistakes": "no-scale"}, "scores not scaled"),
        ({"mistakes": "mask-transposed"}, "causal mask transposed"),
        ({"window": 3, "full_every": 2, "n_layers": 3}, "window 3 in 2 of 3 blocks"),
        ({"sink": "learned"}, "sink"),
    ],
)
def test_an_attention_says_what_it_does_otherwise(settings, words):
    shape, part = TextShape(17, 19), "decoder.layers.0.self_attention"
    assert words in said(text_config("decoder-only", **settings), shape, part)
    assert words not in said(text_config("decoder-only"), shape, part)


@pytest.mark.parametrize(
    ("mistakes", "n_sums"), [("", 2), ("no-residuals", 0), ("residual-from-normed", 2)]
)
def test_a_block_has_a_sum_for_each_residual(mistakes, n_sums):
    config = text_config("decoder-only", mistakes=mistakes, n_layers=2)
    found = parts(config, TextShape(17, 19))
    assert sum(name.endswith(" +") for name in found) == n_sums
    assert {one.n_blocks for one in found.values()} == {0, 2}


@pytest.mark.parametrize(
    ("node", "steps"),
    [
        ("image", {"picture"}),
        ("stem", {"patches", "patch-projection"}),
        ("positions", {"positions"}),
        ("encoder.layers.0.feed_forward", {"feed-forward"}),
        ("tgt ids", {"tokens", "masks"}),
        ("tgt_positions", {"word-positions"}),
        ("decoder.layers.0.self_attention", {"decoder-attention"}),
        ("decoder.layers.0.cross_attention", {"cross-attention", "decoder-add-norm"}),
        ("decoder.layers.0.feed_forward", {"decoder-feed-forward", "logits"}),
        ("output", {"logits"}),
        ("answer", {"whole"}),
    ],
)
def test_a_part_of_a_captioner_leads_to_its_own_steps(node, steps):
    config = text_config("captioner", patch_size=2, n_decoder_layers=3)
    one = parts(config, CAPTION_SHAPE)[node]
    assert set(index(config, CAPTION_SHAPE)) & set(one.steps) == steps
    assert one.n_blocks == (3 if node.startswith("decoder") else one.n_blocks)


@pytest.mark.parametrize(("norm", "expected"), [("layernorm", ("norm",)), ("none", ())])
def test_segments_stand_in_the_equation_of_a_norm_that_they_have(norm, expected):
    shape = TextShape(17, 17, head="pooler", n_segments=2)
    found = parts(text_config("encoder-only", norm=norm), shape)
    assert found["segments"].equations == expected
