"""Figures of language models and of readers."""

import numpy as np
import pandas as pd
import pytest

from tfm_core.plots.texts.gpt import digit_map, guesses, head_rows, lens_map
from tfm_core.plots.texts.writing import surprise_text, written_text

EVIL = "<img src=x onerror=alert(1)>"
THEMES = ("light", "dark")


@pytest.mark.parametrize("theme", THEMES)
def test_the_lens_has_a_row_for_each_token_and_a_column_for_each_depth(theme):
    depth, length = 3, 5
    chances = np.random.default_rng(0).random((depth, length))
    says = tuple(tuple(f"{d}{t}" for t in range(length)) for d in range(depth))
    figure = lens_map(("<bos>", "a", " ", "\n", EVIL), says, chances, chances / 2, theme)
    trace = figure.data[0]
    np.testing.assert_allclose(trace.z, chances.T, rtol=1e-6)
    assert trace.text[4][2] == "24"
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "layer 1", "layer 2"]
    assert list(figure.layout.yaxis.ticktext)[:4] == ["&lt;bos&gt;", "a", "␣", "↵"]
    assert "<img" not in figure.to_json()


def test_what_came_is_marked_framed_and_told_and_never_markup():
    best = [("a", 0.5), ("b", 0.25)]
    figure = guesses(best, "b", 0.25, 2)
    assert [float(x) for x in figure.data[0].x] == [0.5, 0.25]
    assert figure.layout.yaxis.ticktext[1] == "b ◀ came, no. 2"
    figure = guesses(best, EVIL, 0.001, 31)
    assert len(figure.data[0].x) == 3
    assert figure.layout.yaxis.ticktext[2].endswith("◀ came, no. 31")
    assert "<img" not in figure.to_json()
    html = surprise_text(("a", EVIL, "b"), np.log([1.0, 64.0, 2.0]), 2, " ")
    assert "2: 6.00 bits (4.16 nats), p = 0.0156" in html
    assert 'class="t high"' in html
    assert 'class="t picked"' in html
    assert "--s:0%" in html
    assert "<img" not in html
    assert "<img" not in written_text((EVIL, EVIL), [0.5], 1, " ")
    vocabulary = ("<pad>", "<bos>", "<eos>", "<unk>", "0", "1", "2")
    chances = np.zeros((2, 7))
    chances[0, 5], chances[1, 2], chances[1, 6] = 1.0, 0.25, 0.75
    figure = digit_map(("1", "<eos>"), pd.DataFrame(chances, columns=vocabulary), "light")
    trace = figure.data[0]
    assert list(figure.layout.yaxis.ticktext) == ["0", "1", "2", "&lt;eos&gt;"]
    assert trace.text[1][0] == "100% ✓"
    assert trace.text[3][1] == "25% ✓"
    assert trace.text[2][1] == "75%"
    frames = {(shape.x0, shape.y0) for shape in figure.layout.shapes}
    assert frames == {(0.5, 0.5), (1.5, 2.5)}


WORDS = ("<b>the", "food", "was", "good")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_head_is_a_row_and_every_word_a_column(theme):
    heads = np.random.default_rng(1).random((2, 3, 4))
    figure = head_rows(heads, WORDS, theme=theme, marked=[3])
    np.testing.assert_allclose(figure.data[0].z, heads.reshape(6, 4), rtol=1e-6)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;the", "food", "was", "▸ good")
    with pytest.raises(ValueError, match="but there are 3 words"):
        head_rows(heads, WORDS[:3], theme=theme)
