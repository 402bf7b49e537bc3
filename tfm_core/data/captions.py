"""Captioned pictures: real handwritten digits on a canvas, composed on demand.

Each digit is turned, sized and put into its place, a batch at a time. Training, validation and test
pictures are composed of different digits. Only the scenes are kept, some bytes each, so 200,000
pictures take no more memory than the 5,000 digits.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.choices.config.image_tasks import CaptionTaskConfig, ImageTaskConfig
from tfm_core.data.caption_words import (
    CANVAS,
    GRID,
    LARGE,
    MARGIN,
    SMALL,
    Caption,
    PlacedDigit,
    Scene,
    caption,
    join,
    vocabulary,
)
from tfm_core.data.download import Progress
from tfm_core.data.image_data import EMBEDDED, ImageSplit, load_images, numbered, pixel_statistics
from tfm_core.data.moving import Data, Examples, normalised
from tfm_core.data.text_data import padded
from tfm_core.data.vocabulary import BOS, EOS, Vocabulary

FILLS = 0.9  # share of a square's side that the longer side of a digit takes
_INK_SIDE = 20  # MNIST fits each digit into 20 by 20 of its 28 by 28 pixels
_INK = 48  # brightness from which a pixel counts as ink


@dataclass(frozen=True, slots=True)
class SceneChanges:
    """How each digit is drawn a little differently, (B, n) each.

    angle: degrees counter-clockwise; zoom: factor; slant: columns that a row leans by, for each row
    further up; right and down: pixels.
    """

    angle: Tensor
    zoom: Tensor
    slant: Tensor
    right: Tensor
    down: Tensor


def compose(digits: Tensor, squares: Tensor, changes: SceneChanges | None = None) -> Tensor:
    """Return pictures uint8 (B, 1, CANVAS, CANVAS), each of n digits in their squares.

    digits: uint8 (B, n, 28, 28); squares: int (B, n, 3), left, top and side in pixels, inside the
    canvas and disjoint. What does not fit its square is cut off, so that digits never touch.
    """
    windows = draw_windows(digits, squares[..., 2], changes)  # (B, n, W, W)
    batch, _n, width, _height = windows.shape
    edge = width // 2  # a canvas with an edge, for windows that reach over it
    side = CANVAS + 2 * edge
    corner = squares[..., :2] + (squares[..., 2:] - width) // 2 + edge  # (B, n, 2)
    steps = torch.arange(width, device=windows.device)
    rows, columns = corner[..., 1:] + steps, corner[..., :1] + steps  # (B, n, W)
    at = rows[..., :, None] * side + columns[..., None, :]
    canvas = windows.new_zeros(batch, side * side)
    canvas.scatter_add_(1, at.flatten(1), windows.flatten(1))
    inner = canvas.view(batch, 1, side, side)[..., edge:-edge, edge:-edge]
    return inner.round().clamp(0, 255).to(torch.uint8)


def ink_boxes(digits: Tensor, squares: Tensor) -> Tensor:
    """Return the box of each digit's ink on the canvas: int64 (B, n, 4).

    Left, top, right and bottom in pixels, the last two behind the ink; arguments as in ``compose``.
    """
    windows = draw_windows(digits, squares[..., 2])
    low, high = _extent(windows >= _INK)
    corner = squares[..., :2] + (squares[..., 2:] - windows.size(-1)) // 2
    return torch.cat([corner + low, corner + high], -1)


def draw_windows(digits: Tensor, sides: Tensor, changes: SceneChanges | None = None) -> Tensor:
    """Return each digit in the middle of a window of LARGE pixels: float (B, n, LARGE, LARGE).

    Its ink lies in the middle of the window, and outside its place (sides: (B, n)) is nothing.
    """
    low, high = _extent(digits > 0)
    middle = (low + high).flatten(0, 1) / digits.size(-1) - 1  # grid_sample counts from -1 to 1
    grow = LARGE / digits.size(-1) * _INK_SIDE / (FILLS * sides.flatten())
    affine = _upright(middle, grow) if changes is None else _changed(middle, grow, changes)
    grid = F.affine_grid(affine, [len(affine), 1, LARGE, LARGE], align_corners=False)
    pixels = digits.flatten(0, 1)[:, None].float()
    windows = F.grid_sample(pixels, grid, align_corners=False).view(*sides.shape, LARGE, LARGE)
    away = (torch.arange(LARGE, device=sides.device) - (LARGE - 1) / 2).abs()  # from the middle
    is_inside = away < sides[..., None] / 2  # (B, n, W)
    return windows * (is_inside[..., :, None] & is_inside[..., None, :])


def _upright(middle: Tensor, grow: Tensor) -> Tensor:
    """Return where pixels come from, (N, 2, 3): middle (N, 2) of the ink, grow (N,) the scale."""
    none = torch.zeros_like(grow)
    rows = (
        torch.stack([grow, none, middle[:, 0]], -1),
        torch.stack([none, grow, middle[:, 1]], -1),
    )
    return torch.stack(rows, 1)


def _changed(middle: Tensor, grow: Tensor, changes: SceneChanges) -> Tensor:
    """Return ``_upright`` with the digits changed: the inverse of what is done to them."""
    turn = changes.angle.flatten() * (math.pi / 180)
    scale = grow / changes.zoom.flatten()
    cos, sin = turn.cos() * scale, turn.sin() * scale
    slant = changes.slant.flatten()
    # first the turn, then the slant: a column moves by slant for each row
    turned = torch.stack([cos, cos * slant - sin, sin, sin * slant + cos], -1).view(-1, 2, 2)
    move = torch.stack([changes.right, changes.down], -1).flatten(0, 1) * (2 / LARGE)
    at = middle - (turned @ move[..., None])[..., 0]
    return torch.cat([turned, at[..., None]], -1)


def _extent(ink: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first column and row of ink, and the ones behind the last: each (..., 2)."""
    size = ink.size(-1)
    used = torch.stack([ink.any(-2), ink.any(-1)], -2).int()  # (..., 2, size): columns, rows
    low = used.argmax(-1)
    return low, size - used.flip(-1).argmax(-1)


_TRIES = 32768  # scenes drawn at once; those that are not plain are dropped


def draw_scenes(
    labels: Tensor, n: int, *, n_digits: int, sizes: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return ``n`` plain scenes (``are_plain``): which digits, and their squares.

    labels: int64 (D,), the numbers of the digits to choose from. Returns int64 (N, n_digits) and
    int64 (N, n_digits, 3), left, top and side in pixels.
    """
    batches: list[tuple[Tensor, Tensor]] = []
    total = 0
    while total < n:  # ends: of two squares in eight, of three in a hundred are disjoint
        shape = (_TRIES, n_digits)
        chosen = torch.randint(len(labels), shape, generator=generator)
        is_large = torch.randint(2, shape, generator=generator) == 1
        side = torch.where(is_large, LARGE, SMALL) if sizes else torch.full(shape, LARGE)
        n_corners = ((CANVAS - side) // GRID + 1)[..., None]
        corner = (torch.rand((*shape, 2), generator=generator) * n_corners).long() * GRID
        squares = torch.cat([corner, side[..., None]], -1)
        is_plain = are_plain(squares, labels[chosen])
        batches.append((chosen[is_plain], squares[is_plain]))
        total += int(is_plain.sum())
    chosen, squares = (torch.cat(part)[:n] for part in zip(*batches, strict=True))
    return chosen, squares


def are_plain(squares: Tensor, numbers: Tensor) -> Tensor:
    """Return where a caption follows at a glance, bool (N,): nothing in the scene is nearly a tie.

    The gaps across and down of any two digits differ by MARGIN pixels at least, and of two equal
    numbers one is nearer the top left corner by as much. squares: (N, n, 3), numbers: (N, n).
    """
    near, side = squares[..., :2], squares[..., 2:]  # (N, n, 2): left and top
    far = near + side
    is_plain = torch.ones(len(squares), dtype=torch.bool)
    for i in range(squares.size(1)):
        for j in range(i):
            gap = torch.maximum(near[:, j] - far[:, i], near[:, i] - far[:, j])  # (N, 2)
            is_plain &= (gap.amax(1) >= 0) & ((gap[:, 0] - gap[:, 1]).abs() >= MARGIN)
            middles = (near + far).sum(-1)  # twice row plus column
            is_distinct = (middles[:, i] - middles[:, j]).abs() >= 2 * MARGIN
            is_plain &= is_distinct | (numbers[:, i] != numbers[:, j])
    return is_plain


STATISTICS_OF = 500  # training pictures whose pixels are counted


@dataclass(frozen=True)
class CaptionSplit(Examples):
    """N scenes of n digits each, and their captions.

    digits: the pictures to compose from; chosen: int64 (N, n), which of them; squares: int64
    (N, n, 3), left, top and side in pixels; tgt: int64 (N, T), "<bos> ... <eos>", padded.
    """

    digits: ImageSplit
    chosen: Tensor
    squares: Tensor
    tgt: Tensor
    captions: tuple[Caption, ...]

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.captions)

    def digits_of(self, rows: Tensor | slice) -> Tensor:
        """Return the digits of some scenes: uint8 (B, n, 28, 28)."""
        chosen = self.chosen[rows]
        return self.digits.images[chosen.flatten(), 0].view(*chosen.shape, 28, 28)

    def pictures(self, rows: Tensor | slice, changes: SceneChanges | None = None) -> Tensor:
        """Return the pictures of some scenes: uint8 (B, 1, size, size); see ``compose``."""
        return compose(self.digits_of(rows), self.squares[rows], changes)

    def scene(self, row: int) -> Scene:
        """Return a scene in words' terms."""
        numbers = self.digits.labels[self.chosen[row]].tolist()
        return scene_of(numbers, self.squares[row].tolist())


@dataclass(frozen=True)
class CaptionData(Data):
    """A caption task: its settings and words, three splits, mean and deviation of the pixels."""

    config: CaptionTaskConfig
    vocabulary: Vocabulary
    train: CaptionSplit
    validation: CaptionSplit
    test: CaptionSplit
    mean: Tensor
    std: Tensor

    def normalise(self, images: Tensor) -> Tensor:
        """Return uint8 pictures (..., C, H, W) as float32 of mean 0 and deviation 1."""
        return normalised(images, self.mean, self.std)

    def shown(self, indices: Tensor) -> tuple[list[str], list[str]]:
        """See Data."""
        captions = (self.train.captions[n].words for n in indices.tolist())
        return numbered(indices), [join(words, self.config) for words in captions]


def load_captions(
    config: CaptionTaskConfig, *, seed: int, progress: Progress | None = None
) -> CaptionData:
    """Make the splits of a caption task on the CPU; the same seed makes the same ones.

    The language changes the words only, not the pictures.
    """
    words = vocabulary(config)
    digits = load_images(ImageTaskConfig(name=EMBEDDED), seed=seed)

    def split(part: ImageSplit, name: str, n: int) -> CaptionSplit:
        generator = torch.Generator().manual_seed(
            random.Random(f"{config.n_digits} {config.sizes} {name} {seed}").getrandbits(63)
        )
        chosen, squares = draw_scenes(
            part.labels, n, n_digits=config.n_digits, sizes=config.sizes, generator=generator
        )
        numbers, rows = part.labels[chosen].tolist(), squares.tolist()
        captions = tuple(
            caption(scene_of(*pair), config) for pair in zip(numbers, rows, strict=True)
        )
        return CaptionSplit(part, chosen, squares, encode(words, captions), captions)

    train = split(digits.train, "train", config.n_train)
    mean, std = pixel_statistics(train.pictures(torch.arange(min(STATISTICS_OF, len(train)))))
    return CaptionData(
        config,
        words,
        train,
        split(digits.validation, "validation", config.n_validation),
        split(digits.test, "test", config.n_test),
        mean,
        std,
    )


def encode(words: Vocabulary, captions: tuple[Caption, ...]) -> Tensor:
    """Return captions as ids (N, T), "<bos> ... <eos>", padded to the longest."""
    length = 2 + max(len(caption.words) for caption in captions)
    rows = [[BOS, *words.encode(caption.words), EOS] for caption in captions]
    return padded(rows, length)


def scene_of(numbers: list[int], squares: list[list[int]]) -> Scene:
    """Return the scene of numbers and their squares (left, top, side)."""
    return tuple(
        PlacedDigit(number, *square) for number, square in zip(numbers, squares, strict=True)
    )
