import pytest
import torch

from tfm_core.data.augment import augment, shifted, transformed

B, C, SIDE = 5, 3, 11


@pytest.fixture
def images():
    return torch.rand(B, C, SIDE, SIDE, generator=torch.Generator().manual_seed(1))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def dots(n):
    images = torch.zeros(n, 1, SIDE, SIDE)
    images[:, 0, 5, 5] = 1
    return images


def lit(images):
    """Return row and column of the single lit pixel of each picture."""
    return [divmod(int(image.argmax()), SIDE) for image in images]


def test_nothing_to_do_is_the_identity_and_moves_equal_exact_ones(images):
    assert augment(images, shift=0, rotation=0, scale=0, generator=seeded()) is images
    down, right = torch.tensor([0, 1, -2, 3, 0]), torch.tensor([0, 2, 1, -3, -1])
    moved = shifted(images, down, right)
    for before, after, dy, dx in zip(images, moved, down.tolist(), right.tolist(), strict=True):
        for row in range(SIDE):
            for column in range(SIDE):
                from_row = min(max(row - dy, 0), SIDE - 1)
                from_column = min(max(column - dx, 0), SIDE - 1)
                assert torch.equal(after[:, row, column], before[:, from_row, from_column])
    down, right = torch.tensor([0, 1, -2, 3, 0]), torch.tensor([0, 2, 1, -3, -1])
    none = torch.zeros(B)
    actual = transformed(images, down=down, right=right, angle=none, zoom=none + 1)
    torch.testing.assert_close(actual, shifted(images, down, right), atol=1e-5, rtol=0)
    none = torch.zeros(B)
    actual = transformed(images, down=none, right=none, angle=none + 90, zoom=none + 1)
    torch.testing.assert_close(actual, images.rot90(1, (2, 3)), atol=1e-5, rtol=0)


def test_shifts_reach_every_distance_and_zooming_enlarges():
    moved = augment(dots(400), shift=2, rotation=0, scale=0, generator=seeded())
    assert set(lit(moved)) == {(5 + dy, 5 + dx) for dy in range(-2, 3) for dx in range(-2, 3)}
    assert torch.equal(moved.sum((1, 2, 3)), torch.ones(400))
    disc = torch.zeros(1, 1, SIDE, SIDE)
    disc[..., 4:7, 4:7] = 1
    none = torch.zeros(1)
    larger = transformed(disc, down=none, right=none, angle=none, zoom=none + 1.5)
    assert disc.sum() * 1.8 < larger.sum() < disc.sum() * 2.7


SETTINGS = [(2, 0, 0), (1.5, 0, 0), (1, 10, 0), (0, 0, 0.2), (2, 15, 0.1)]


@pytest.mark.parametrize(("shift", "rotation", "scale"), SETTINGS)
def test_the_generator_decides_and_shape_kind_and_extremes_stay(images, shift, rotation, scale):
    def once(seed):
        return augment(images, shift=shift, rotation=rotation, scale=scale, generator=seeded(seed))

    assert torch.equal(once(3), once(3))
    assert not torch.equal(once(3), once(4))
    assert once(3).shape == images.shape
    assert once(3).dtype == images.dtype
    changed = augment(images, shift=shift, rotation=rotation, scale=scale, generator=seeded())
    assert images.min() - 1e-5 <= changed.min()
    assert changed.max() <= images.max() + 1e-5
