"""When a head is called an induction head: on constructed scores, and on attention made by hand."""

import numpy as np
import pytest

from tfm_core.inspect.attention.head_roles import behind_earlier
from tfm_core.inspect.discover.heads import formed, one_back, share_on

pytestmark = pytest.mark.quick

STEPS = np.array([0, 10, 30, 70])
LOW, HIGH = 0.399, 0.4  # of its attention, from which on a page calls a head one


def scores(matching, previous):
    """Two layers of two heads: what layer 2, head 1 matches, and layer 1, head 2 looks back."""
    matches, looks_back = np.full((2, 4, 2, 2), 0.01)
    matches[:, 1, 0], looks_back[:, 0, 1] = matching, previous
    return STEPS, matches, looks_back


@pytest.mark.parametrize(
    ("matching", "previous", "step"),
    [
        ([LOW, LOW, HIGH, HIGH], [LOW, HIGH, HIGH, HIGH], 30),
        ([LOW, HIGH, LOW, HIGH], [LOW, LOW, LOW, HIGH], 70),  # it has to stay
        ([LOW, LOW, HIGH, LOW], [HIGH, HIGH, HIGH, HIGH], None),  # it went again
        ([LOW, LOW, LOW, LOW], [LOW, HIGH, HIGH, HIGH], None),
        ([LOW, LOW, HIGH, HIGH], [LOW, LOW, LOW, LOW], None),  # nothing to build on
        ([HIGH, HIGH, HIGH, HIGH], [LOW, HIGH, HIGH, HIGH], None),  # it did not form: it was there
    ],
)
def test_a_head_forms_where_it_stays_and_builds_on_another(matching, previous, step):
    expected = None if step is None else (step, ((1, 0),), (0, 1))
    assert formed(*scores(matching, previous)) == expected


def test_of_two_heads_both_are_named_with_the_cells_of_a_loop():
    _steps, matching, previous = scores([LOW, LOW, LOW, HIGH], [HIGH] * 4)
    matching[:, 1, 1] = [LOW, HIGH, HIGH, HIGH]
    assert formed(STEPS, matching, previous) == (10, ((1, 1), (1, 0)), (0, 1))
    matching, previous = np.full((2, 4, 1, 2), HIGH)
    matching[0] = 0
    assert formed(STEPS, matching, previous) is None
    tokens = tuple("abcadbca")
    n = len(tokens)
    for q in range(n):
        for k in range(n):
            is_behind = 0 < k <= q and tokens[k - 1] == tokens[q] and k - 1 < q
            assert behind_earlier(tokens)[q, k] == is_behind
            assert one_back(tokens)[q, k] == (k == q - 1)
    texts = [tuple("abcdabc"), tuple("xyxy")]
    cells = [behind_earlier(text) for text in texts]
    maps = np.zeros((2, 2, 7, 7))
    for n, chosen in enumerate(cells):
        length = len(chosen)
        maps[n, 0, :length, :length] = chosen / np.maximum(chosen.sum(1, keepdims=True), 1)
        maps[n, 1, :length, :length] = np.tril(np.ones((length, length))) / (
            1 + np.arange(length)[:, None]
        )
    perfect, even = share_on(maps, cells)
    assert perfect == pytest.approx(1)
    rows = [row + 1 for chosen in cells for row in np.flatnonzero(chosen.any(1))]
    assert even == pytest.approx(np.mean([1 / row for row in rows]))
