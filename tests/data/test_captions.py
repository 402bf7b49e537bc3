"""Captioned pictures: relations are true, digits never touch, splits share no digit."""

import itertools

import pytest
import torch

from tests.pairwise import pairwise
from tfm_core.choices.config import CaptionTaskConfig
from tfm_core.data.caption_words import (
    ENGLISH_PLACES,
    KOREAN,
    KOREAN_PLACES,
    PlacedDigit,
    are_disjoint,
    caption,
    covered,
    gaps,
    join,
    longest,
    named_order,
    relation,
    vocabulary,
)
from tfm_core.data.captions import SceneChanges, are_plain, compose, ink_boxes, load_captions
from tfm_core.data.vocabulary import BOS, EOS, PAD

CANVAS, GRID, LARGE, SMALL = 49, 7, 21, 14  # pixels

FEW = {"n_train": 67, "n_validation": 13, "n_test": 17}
CONFIGS = [
    CaptionTaskConfig(**chosen, **FEW)
    for chosen in pairwise(n_digits=(1, 2, 3), language=("english", "korean"), sizes=(False, True))
]
IDS = [f"{c.n_digits} {c.language}{' sizes' * c.sizes}" for c in CONFIGS]
WORD_OF = {"left": "left of", "right": "right of", "above": "above", "below": "below"}


def is_plain(scene):
    """Return what ``are_plain`` says of scenes, of one: nothing in it is nearly a tie."""
    for first, second in itertools.combinations(scene, 2):
        across, down = gaps(first, second)
        near = abs(first.middle_sum - second.middle_sum) < 14 and first.number == second.number
        if max(across, down) < 0 or abs(across - down) < 7 or near:
            return False
    return True


@pytest.fixture(scope="module", params=CONFIGS, ids=IDS)
def data(request):
    return load_captions(request.param, seed=3)


def test_a_single_digit_has_words_for_itself_alone():
    one = CaptionTaskConfig(n_digits=1, language="english", sizes=False)
    numbers = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
    words = {word for word in vocabulary(one).tokens if not word.startswith("<")}
    assert words == {"a", "an", *numbers}


def splits(data):
    return {"train": data.train, "validation": data.validation, "test": data.test}


def test_pictures_of_splits_differ_and_captions_are_true_of_them(data):
    for split in splits(data).values():
        for row in range(len(split)):
            scene = split.scene(row)
            assert is_plain(scene)
            for placed in scene:
                assert placed.left % GRID == placed.top % GRID == 0
                assert 0 <= placed.left < placed.right <= CANVAS
                assert 0 <= placed.top < placed.bottom <= CANVAS
            assert all(are_disjoint(*pair) for pair in itertools.combinations(scene, 2))
    seen = [
        {split.digits.images[i].numpy().tobytes() for i in split.chosen.unique().tolist()}
        for split in splits(data).values()
    ]
    assert all(len(a & b) == 0 for a, b in itertools.combinations(seen, 2))
    assert all(seen)
    config = data.config
    for row in range(len(data.train)):
        scene, said = data.train.scene(row), data.train.captions[row]
        named = [i for i in said.names if i is not None]
        assert sorted(named) == list(range(config.n_digits))
        first, *others = (scene[i] for i in named)
        text = join(said.words, config)
        assert text == expected(config, first, others)
        for other in others:
            across, down = gaps(first, other)
            assert max(across, down) >= 0
            assert {
                "left": first.right <= other.left,
                "right": first.left >= other.right,
                "above": first.bottom <= other.top,
                "below": first.top >= other.bottom,
            }[relation(first, other)]


def expected(config, first, others):
    """The caption as a person would put it together from its parts."""
    if config.language == "english":
        names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

        def noun(placed):
            size = ("large " if placed.side == LARGE else "small ") if config.sizes else ""
            words = f"{size}{names[placed.number]}"
            return f"{'an' if words == 'eight' else 'a'} {words}"

        rest = ", ".join(f"{WORD_OF[relation(first, o)]} {noun(o)}" for o in others)
        return f"{noun(first)} {rest}".strip()

    def noun(placed):
        size = ("큰 " if placed.side == LARGE else "작은 ") if config.sizes else ""
        return size + KOREAN[placed.number]

    if not others:
        return f"{noun(first)}이다"
    topic = "는" if KOREAN[first.number] in "이사오구" else "은"
    parts = [f"{noun(o)} {KOREAN_PLACES[relation(first, o)]}에 있" for o in others]
    return f"{noun(first)}{topic} {'고 '.join(parts)}다"


@pytest.mark.parametrize("config", CONFIGS[:3], ids=IDS[:3])
def test_every_caption_fits_the_vocabulary_and_the_longest(config):
    data = load_captions(config, seed=5)
    words = vocabulary(config)
    lengths = set()
    for said in data.train.captions:
        assert all(word in words for word in said.words)
        lengths.add(len(said.words))
    assert max(lengths) <= longest(config)
    ids = data.train.tgt
    assert (ids[:, 0] == BOS).all()
    assert ((ids == EOS).sum(1) == 1).all()
    assert words.decode(ids[0].tolist()) == list(data.train.captions[0].words)
    assert ids.size(1) == 2 + max(lengths)
    assert (ids[ids.eq(EOS).cumsum(1).sub(ids.eq(EOS).int()) > 0] == PAD).all()


def test_seed_and_language_decide_what_is_drawn_and_said():
    english, korean = (
        load_captions(CaptionTaskConfig(language=name, **FEW), seed=1)
        for name in ("english", "korean")
    )
    rows = torch.arange(11)
    assert torch.equal(english.test.pictures(rows), korean.test.pictures(rows))
    assert len(ENGLISH_PLACES) == len(KOREAN_PLACES) == 4
    first, again, other = (load_captions(CaptionTaskConfig(**FEW), seed=n) for n in (0, 0, 1))
    rows = torch.arange(13)
    assert torch.equal(first.train.pictures(rows), again.train.pictures(rows))
    assert first.train.captions == again.train.captions
    assert not torch.equal(first.train.pictures(rows), other.train.pictures(rows))
    scene = (PlacedDigit(7, 0, 0), PlacedDigit(3, 28, 0), PlacedDigit(7, 14, 28))
    assert named_order(scene) == [1, 0, 2]
    words = caption(scene, CaptionTaskConfig(n_digits=3)).words
    assert " ".join(words) == "a three right of a seven , above a seven"


def test_all_ink_lies_in_the_boxes_and_every_box_in_its_place(data):
    split = data.test
    rows = torch.arange(len(split))
    digits, squares = split.digits_of(rows), split.squares[rows]
    pictures, boxes = split.pictures(rows), ink_boxes(digits, squares)
    for row in range(len(split)):
        left_over = pictures[row, 0].clone()
        for (left, top, right, bottom), (x, y, side) in zip(
            boxes[row].tolist(), squares[row].tolist(), strict=True
        ):
            assert x <= left < right <= x + side
            assert y <= top < bottom <= y + side
            assert pictures[row, 0, top:bottom, left:right].max() > 100
            left_over[top:bottom, left:right] = 0
        assert left_over.max() < 48


def test_boxes_cover_what_they_touch_and_many_scenes_are_as_one_by_one():
    assert covered((0, 0, 7, 7), 7) == [0]
    assert covered((6, 0, 8, 14), 7) == [0, 1, 7, 8]
    assert covered((42, 42, 49, 49), 7) == [48]
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(10, (500, 3), generator=generator)
    corner = torch.randint(0, 5, (500, 3, 2), generator=generator) * GRID
    side = torch.where(torch.randint(2, (500, 3, 1), generator=generator) == 1, LARGE, SMALL)
    squares = torch.cat([corner, side], -1)
    one_by_one = [
        is_plain([PlacedDigit(n, *square) for n, square in zip(*pair, strict=True)])
        for pair in zip(numbers.tolist(), squares.tolist(), strict=True)
    ]
    assert are_plain(squares, numbers).tolist() == one_by_one
    assert 0 < sum(one_by_one) < 500


def test_changed_digits_stay_in_their_places_and_shifts_move_whole_pixels():
    split = load_captions(CaptionTaskConfig(sizes=True, **FEW), seed=2).train
    rows = torch.arange(31)
    wild = [torch.full((31, 2), value) for value in (45.0, 1.5, 1.0, 7.0, -7.0)]
    picture = split.pictures(rows, SceneChanges(*wild))
    allowed = torch.zeros(31, CANVAS, CANVAS, dtype=torch.bool)
    for row, of_row in enumerate(split.squares[rows].tolist()):
        for x, y, side in of_row:
            allowed[row, y : y + side, x : x + side] = True
    assert picture[:, 0][~allowed].max() == 0
    assert not torch.equal(picture, split.pictures(rows))
    split = load_captions(CaptionTaskConfig(n_digits=1, **FEW), seed=2).train
    rows, none = torch.arange(7), torch.zeros(7, 1)
    still = split.pictures(rows, SceneChanges(none, none + 1, none, none, none))
    torch.testing.assert_close(still, split.pictures(rows), atol=1, rtol=0)
    squares = split.squares[rows]
    moved = compose(
        split.digits_of(rows), squares, SceneChanges(none, none + 0.5, none, none + 2, none)
    )
    stood = compose(
        split.digits_of(rows), squares, SceneChanges(none, none + 0.5, none, none, none)
    )
    torch.testing.assert_close(moved[..., 2:], stood[..., :-2], atol=1, rtol=0)
