"""Masks as properties: what each kind allows, and that a masked weight is exactly 0."""

import numpy as np
import pytest
import torch

from tfm_core.inspect import mask_lab, mask_traps
from tfm_core.inspect.mask_lab import (
    MASKS,
    PAD_TOKEN,
    build_mask,
    masked_attention,
    seeded_projection,
)
from tfm_core.layers.masks import causal_mask, packed_mask, prefix_mask
from tfm_core.runs.store import RunStore

WORDS = ("a", "b", "c", "d", "e", PAD_TOKEN, PAD_TOKEN)
SEGMENTS = (0, 0, 0, 1, 1, 2, 2)
PADDED = set(MASKS) - {"none", "causal"}


def mask_of(kind, **sizes):
    query = ("<bos>", "x", "y") if kind == "cross" else WORDS
    return build_mask(kind, query, WORDS, segments=SEGMENTS, **sizes)


@pytest.mark.parametrize("window", [0, 1, 3])
def test_a_window_allows_keys_at_most_so_far_away(window):
    rows, columns = np.indices((7, 7))
    expected = (abs(rows - columns) <= window) & (columns < 5)
    assert np.array_equal(mask_of("window", window=window), expected)


def test_masks_join_and_part_as_attention_does_and_as_clicks_say():
    assert torch.equal(prefix_mask(7, 0), causal_mask(7))
    assert prefix_mask(7, 7).all()
    mask = prefix_mask(7, 3)
    assert mask[:, :3].all()
    assert torch.equal(mask[:, 3:], causal_mask(7)[:, 3:])
    mask = packed_mask(torch.tensor([[0, 0, 1, 1, 1], [0, 1, 2, 2, 2]]))
    assert mask.shape == (2, 1, 5, 5)
    assert mask[0, 0].tolist() == [[1, 1, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 1]] * 3
    assert mask[1, 0].sum() == 1 + 1 + 9
    projected = seeded_projection(WORDS, WORDS)
    mask = mask_of("combined")
    found = masked_attention(projected, mask)
    bias = torch.zeros(7, 7).masked_fill(~torch.tensor(mask), float("-inf"))
    weights = (torch.tensor(projected.scores) + bias).softmax(-1)
    np.testing.assert_allclose(found.weights, weights.numpy(), atol=1e-6)
    np.testing.assert_allclose(found.output, weights.numpy() @ projected.value, atol=1e-5)
    mask = mask_of("causal")
    once = mask_lab.toggle_cells(mask, [(0, 3), (6, 0), (99, 0), (-1, 2)])
    assert (once != mask).sum() == 2
    assert np.array_equal(mask_lab.toggle_cells(once, [(0, 3), (6, 0)]), mask)
    tokens = mask_lab.parse_tokens("|| a b|c, d | | e|")
    assert mask_lab.segments_of(tokens) == (("a", "b", "c", "d", "e"), (0, 0, 1, 1, 2))


@pytest.mark.parametrize("kind", MASKS)
def test_rows_sum_to_one_and_the_code_to_copy_makes_the_same_mask(kind):
    mask = mask_of(kind)
    assert mask.dtype == np.bool_
    assert mask.shape == (3 if kind == "cross" else 7, 7)
    assert mask[:, 5:].any() == (kind not in PADDED)
    query = ("<bos>", "x", "y") if kind == "cross" else WORDS
    mask[2] = False
    found = masked_attention(seeded_projection(query, WORDS), mask)
    assert (found.weights[~mask] == 0).all()
    sums = found.weights.sum(1)
    np.testing.assert_allclose(sums[mask.any(1)], 1, atol=1e-6)
    assert (sums[~mask.any(1)] == 0).all()
    assert 2 in found.blind
    assert np.isfinite(found.output).all()
    assert (found.output[2] == 0).all()
    query = ("<bos>", "x", "y") if kind == "cross" else WORDS
    sizes = {"window": 2, "prefix": 3, "segments": SEGMENTS}
    names = {}
    exec(mask_lab.mask_code(kind, query, WORDS, **sizes), names)
    expected = build_mask(kind, query, WORDS, **sizes)
    assert np.array_equal(names["mask"].numpy(), expected)
    exec(mask_lab.mask_literal(expected), names)
    assert np.array_equal(names["mask"].numpy(), expected)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Type at least one word."),
        (" , | ", "Type at least one word"),
        ("a " * 49, "at most 48 tokens, not 49"),
        ("x" * 25, "has 25 letters"),
    ],
)
def test_what_cannot_be_read_is_said(text, sentence):
    with pytest.raises(ValueError, match=sentence.replace("|", r"\|")):
        mask_lab.parse_tokens(text)


def test_masks_and_words_that_do_not_fit_are_said_and_conventions_agree():
    with pytest.raises(ValueError, match="There is no mask 'sideways'"):
        build_mask("sideways", WORDS, WORDS)
    with pytest.raises(ValueError, match="7 tokens need 7 segments, not 0"):
        build_mask("packed", WORDS, WORDS)
    with pytest.raises(ValueError, match="needs the same tokens"):
        build_mask("causal", ("a",), WORDS)
    torch.manual_seed(3)
    mask = causal_mask(5)
    names = {"d_model": 6, "n_heads": 1, "x": torch.randn(2, 5, 6), "mask": mask}
    names["keep"] = torch.ones(2, 5, dtype=torch.bool)
    exec(mask_lab.HOUSE_MHA, names)
    assert (names["weights"][:, ~mask] == 0).all()
    names["q"] = names["k"] = names["v"] = torch.randn(2, 1, 5, 3)
    exec(mask_lab.HOUSE_SDPA, names)
    torch.testing.assert_close(names["out"][:, :, 0], names["v"][:, :, 0])
    run = recorded()
    with pytest.raises(ValueError, match="“xylophone” is not a word"):
        mask_lab.run_projection(run, "padding", ("xylophone",), ())
    with pytest.raises(ValueError, match="is not a word of this task"):
        mask_lab.task_words(run, "the xylophone")
    with pytest.raises(ValueError, match="“the” is not a word"):
        mask_lab.task_words(run, "the cat", "causal")
    with pytest.raises(ValueError, match="reads pictures"):
        mask_lab.task_words(RunStore().get("recorded-digits"), "the cat")


IS_PADDING = np.array([False] * 5 + [True] * 2)


def wrong_axis(kind, clicked=(), words=WORDS):
    made = seeded_projection(words, words)
    plain = mask_lab.without_padding(words)
    rest = build_mask(kind, plain, plain, segments=SEGMENTS)
    is_padding = np.array([word == PAD_TOKEN for word in words])
    return made, mask_traps.wrong_axis(made, is_padding, rest, clicked)


def test_masks_on_the_wrong_axis_read_padding_and_a_causal_half_hides_it():
    _made, found = wrong_axis("padding")
    assert found["right"][1] == 0
    wrong, leaked = found["wrong"]
    assert (wrong[:5, 5:] > 0).all()
    assert (wrong[5:] == 0).all()
    assert 0 < leaked < 1
    with pytest.raises(ValueError, match="Add padding above"):
        wrong_axis("padding", words=("a", "b", "c", "d", "e", "f", "g"))
    _made, found = wrong_axis("combined")
    assert found["wrong"][1] == 0
    alone, leaked = found["alone"]
    assert leaked > 0
    np.testing.assert_array_equal(alone, wrong)
    before = (PAD_TOKEN, PAD_TOKEN, "a", "b", "c", "d", "e")
    assert wrong_axis("combined", words=before)[1]["wrong"][1] > 0


@pytest.mark.parametrize("kind", sorted(PADDED - {"cross"}))
def test_the_right_axis_is_the_whole_mask_that_was_chosen_with_its_clicks(kind):
    clicked = [(0, 1), (3, 6)]
    made, found = wrong_axis(kind, clicked)
    mask = mask_lab.toggle_cells(build_mask(kind, WORDS, WORDS, segments=SEGMENTS), clicked)
    np.testing.assert_array_equal(found["right"][0], masked_attention(made, mask).weights)


def test_half_precision_blind_rows_and_float_masks_do_what_they_do():
    found = {
        (p.dtype, p.fill): p
        for p in mask_traps.precision(np.linspace(-2, 3, 7), ~IS_PADDING).itertuples()
    }
    assert found["float16", "-1e9"].stored is None
    assert "error" in found["float16", "-1e9"].verdict
    for dtype in mask_traps.TYPES:
        assert np.isnan(found[dtype, "-inf"].blind).all()
        assert np.isnan(found[dtype, "lowest"].twice).all()
        assert not np.isnan(found[dtype, "lowest"].blind).any()
        assert found[dtype, "lowest"].leak == 0
    assert found["bfloat16", "-1e9"].stored == -998244352.0
    for allowed_, leak in ((np.ones(4, bool), 0), (np.zeros(4, bool), 1 / 4)):
        found = {
            (p.dtype, p.fill): p for p in mask_traps.precision(np.zeros(4), allowed_).itertuples()
        }
        assert found["float32", "-1e4"].leak == leak
    assert mask_traps.mixed_row(causal_mask(4).numpy()) == 0
    assert mask_traps.mixed_row(np.array([[False, False], [True, True], [True, False]])) == 2
    assert mask_traps.mixed_row(np.ones((3, 3), np.bool_)) is None
    found = mask_traps.blind_row(seeded_projection(WORDS, WORDS), 3)
    assert np.isnan(found["naive"]).all()
    np.testing.assert_allclose(found["-1e9"], 1 / 7, atol=1e-6)
    assert (found["ours"] == 0).all()
    assert set(mask_traps.torch_blind_rows().values()) <= {"NaN", "zeros"}
    made = seeded_projection(WORDS, WORDS)
    for query in (0, 3, 6):
        assert mask_traps.nan_rows(made, query) == (1, 7)
    made, mask = seeded_projection(WORDS, WORDS), mask_of("causal")
    right, wrong, leaked = mask_traps.float_mask(made, mask)
    added = np.exp(made.scores + mask)
    np.testing.assert_allclose(wrong, added / added.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(right, masked_attention(made, mask).weights)
    assert leaked == pytest.approx(float((wrong * ~mask).sum(1).mean()))
    assert leaked > 0.1
    with pytest.raises(ValueError, match="hides nothing"):
        mask_traps.float_mask(made, np.ones((7, 7), bool))


def recorded():
    return RunStore().get("recorded-korean")


MADE_BY = {
    "cross": "Cross-attention",
    "causal": "Decoder self-attention",
    "combined": "Decoder self-attention",
}


@pytest.mark.parametrize("kind", MASKS)
def test_the_recorded_run_gives_real_scores_that_reproduce_its_weights(kind):
    from tfm_core.data.tasks import text_task
    from tfm_core.probe.capture import capture
    from tfm_core.training.checkpoints import load_model

    run = recorded()
    item = run.probe().items[0]
    src, tgt = (*item["src"], PAD_TOKEN), tuple(item["tgt"])
    is_target = mask_lab.reads_target(run, kind)
    assert is_target == (kind in {"causal", "combined"})
    found = mask_lab.run_projection(
        run, kind, *((tgt, item["src"]) if is_target else (src, tgt)), 0, 2
    )
    assert "head 3 of “English to Korean, recorded” at step 1,000" in found.origin
    assert MADE_BY.get(kind, "Encoder self-attention") in found.origin
    if kind not in {"padding", "cross", "combined"}:
        return
    model, _ = load_model(run.experiment, run.folder / "checkpoints" / "last")
    task = text_task(run.experiment.task)
    ids = [task.src_vocabulary.encode(src)], [[1, *task.tgt_vocabulary.encode(tgt)]]
    with capture(model, only={"weights"}) as cache:
        model(*map(torch.tensor, ids))
    module = mask_lab.modules_for(run, kind)[0]
    mask = build_mask(kind, found.query, found.key)
    np.testing.assert_allclose(
        masked_attention(found, mask).weights, cache[f"{module}.weights"][0, 2].numpy(), atol=1e-5
    )
