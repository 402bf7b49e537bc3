"""Pictures: fetched, read, split, and changed while they are learned."""

import gzip
import hashlib
import struct
import subprocess
import sys
import urllib.request

import pytest
import torch

from tfm_core.choices.config import IMAGE_TASKS, ImageTaskConfig, OwnPicturesTaskConfig
from tfm_core.data.download import SOURCES, fetch, matches, unpack_gzip
from tfm_core.data.image_data import (
    DataUnavailable,
    ImageSplit,
    data_dir,
    draw_moves,
    load_images,
    mislabelled,
    moved,
    read_embedded,
    shifted,
    split_off,
    transformed,
)
from tfm_core.data.torchvision_import import torchvision
from tfm_core.data.user_data.pictures import load_user_pictures


@pytest.fixture(scope="module")
def digits():
    return load_images(ImageTaskConfig(name="mnist-5000"), seed=3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty data folder; every address is out of reach."""
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)  # which remembers a proxy, for all tests
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path))
    return tmp_path


def idx(shape, values):
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + values


@pytest.fixture(scope="module")
def mnist_files():
    """Return a set of MNIST's shape, as the bytes of its files by name."""
    files = {}
    for part, n in (("train", 60000), ("t10k", 10000)):
        labels = bytes(i % 10 for i in range(n))
        files[f"{part}-labels-idx1-ubyte"] = idx((n,), labels)
        files[f"{part}-images-idx3-ubyte"] = idx(
            (n, 28, 28), b"".join(bytes([9 * label]) * 784 for label in labels)
        )
    return files


@pytest.fixture
def mnist(folder, mnist_files):
    """Return the folder of an unpacked MNIST."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, content in mnist_files.items():
        (raw / name).write_bytes(content)
    return raw


def test_the_embedded_digits_are_split_by_class_and_seed_and_normalised(digits):
    sizes = [len(split) for split in (digits.train, digits.validation, digits.test)]
    assert sizes == [4000, 500, 500]
    for split, n in ((digits.train, 400), (digits.validation, 50), (digits.test, 50)):
        assert torch.bincount(split.labels).tolist() == [n] * 10
        assert split.images.shape == (10 * n, 1, 28, 28)
        assert split.images.dtype == torch.uint8
        assert split.labels.dtype == torch.int64
    pictures = [
        {bytes(image.flatten().tolist()) for image in split.images}
        for split in (digits.train, digits.validation, digits.test)
    ]
    assert len(set.union(*pictures)) == 5000
    config = ImageTaskConfig(name="mnist-5000")
    again = load_images(config, seed=3)
    assert torch.equal(again.train.images, digits.train.images)
    for seed in (0, 1, 4):
        other = load_images(config, seed=seed)
        assert torch.equal(other.test.images, digits.test.images)
        assert torch.equal(other.test.labels, digits.test.labels)
        assert not torch.equal(other.validation.images, digits.validation.images)
        assert not prints(other.train) & prints(digits.test)
        assert not prints(other.validation) & prints(digits.test)
    pixels = digits.normalise(digits.train.images)
    assert pixels.dtype == torch.float32
    torch.testing.assert_close(pixels.mean(), torch.tensor(0.0), atol=1e-3, rtol=0)
    torch.testing.assert_close(pixels.std(), torch.tensor(1.0), atol=1e-3, rtol=0)
    assert digits.mean.item() == pytest.approx(0.1307, abs=0.002)
    assert digits.std.item() == pytest.approx(0.3081, abs=0.002)


def prints(split):
    """Return the pictures of a split as a set of bytes."""
    return {image.numpy().tobytes() for image in split.images}


def test_the_splits_of_seed_0_are_those_of_the_recorded_runs():
    """They were drawn one after the other; no digit that a recorded run learned may test it."""
    generator = torch.Generator().manual_seed(0)
    test, rest = split_off(ImageSplit(*read_embedded()), 500, generator)
    validation, train = split_off(rest, 500, generator)
    data = load_images(ImageTaskConfig(name="mnist-5000"), seed=0)
    for drawn, split in ((test, data.test), (validation, data.validation), (train, data.train)):
        assert torch.equal(drawn.images, split.images)


def test_the_official_test_set_is_the_same_for_every_seed(mnist):
    config = ImageTaskConfig(name="mnist")
    one, other = (load_images(config, seed=seed) for seed in (0, 1))
    assert torch.equal(one.test.labels, other.test.labels)
    assert not torch.equal(one.validation.labels, other.validation.labels)


def test_splits_take_evenly_what_is_left_and_not_too_much():
    data = load_images(ImageTaskConfig(name="mnist-5000", n_validation=1003), seed=0)
    assert [len(split) for split in (data.train, data.validation, data.test)] == [3497, 1003, 500]
    counts = torch.bincount(data.validation.labels)
    assert counts.max() - counts.min() <= 1
    with pytest.raises(
        ValueError, match="4500 validation pictures leave none of 4500 for training"
    ):
        ImageTaskConfig(name="mnist-5000", n_validation=4500)
    data = load_images(ImageTaskConfig(name="mnist-5000", n_validation=4499), seed=0)
    assert len(data.train) == 1
    labels = torch.tensor([0] * 70 + [1] * 20 + [2] * 10)
    split = ImageSplit(torch.arange(100, dtype=torch.uint8)[:, None, None, None], labels)
    taken, left = split_off(split, 20, torch.Generator().manual_seed(0))
    assert torch.bincount(taken.labels).tolist() == [14, 4, 2]
    values = torch.cat([taken.images, left.images]).flatten()
    assert values.sort().values.tolist() == list(range(100))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_label_noise_gives_an_exact_share_of_the_training_pictures_another_label(share):
    clean, noisy = (with_noise(noise) for noise in (0.0, share))
    wrong = noisy.train.labels != clean.train.labels
    assert int(wrong.sum()) == round(share * 983)
    assert torch.equal(noisy.train.images, clean.train.images)
    assert set(noisy.train.labels.tolist()) == set(range(10))
    for name in ("validation", "test"):
        assert torch.equal(getattr(noisy, name).images, getattr(clean, name).images)
        assert torch.equal(getattr(noisy, name).labels, getattr(clean, name).labels)
    assert torch.equal(noisy.mean, clean.mean)


def with_noise(share, seed=3):
    config = ImageTaskConfig(name="mnist-5000", n_validation=3517, label_noise=share)
    return load_images(config, seed=seed)


def test_a_wrong_label_is_any_other_class_also_of_ones_own_pictures():
    true = torch.arange(10_000) % 5
    split = ImageSplit(torch.zeros(10_000, 1, 1, 1, dtype=torch.uint8), true)
    given = mislabelled(split, 0.8, 5, seed=7).labels
    offsets = torch.bincount((given - true) % 5, minlength=5)
    assert offsets[0] == 2000
    assert offsets[1:].min() > 1850  # of 2,000 each
    assert torch.equal(split.labels, true)
    config = OwnPicturesTaskConfig()
    clean, noisy = (
        load_user_pictures(config.replace(label_noise=share), seed=2) for share in (0.0, 0.5)
    )
    n = len(clean.train)
    assert int((clean.train.labels != noisy.train.labels).sum()) == round(0.5 * n)
    assert torch.equal(clean.validation.labels, noisy.validation.labels)
    assert int(noisy.train.labels.max()) < len(config.class_names)


def test_a_full_set_in_the_folder_is_used_as_it_is(mnist):
    before = {path: path.stat().st_mtime_ns for path in mnist.rglob("*")}
    data = load_images(ImageTaskConfig(name="mnist", n_validation=600), seed=0)
    assert [len(split) for split in (data.train, data.validation, data.test)] == [59400, 600, 10000]
    assert data.train.images.shape[1:] == (1, 28, 28)
    assert (data.train.images[:, 0, 3, 5] == 9 * data.train.labels).all()
    assert torch.equal(data.test.labels, torch.arange(10000) % 10)
    assert {path: path.stat().st_mtime_ns for path in mnist.rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        (
            "t10k-images-idx3-ubyte",
            lambda all_: all_[:-1],
            "It has 7840015 bytes instead of 7840016",
        ),
        ("t10k-images-idx3-ubyte", lambda all_: all_[:-17], "It has 7839999 bytes instead of"),
        ("train-labels-idx1-ubyte", lambda _all: b"<html>".ljust(60008), "It is not"),
    ],
)
def test_a_damaged_file_is_named(mnist, name, change, why):
    (mnist / name).write_bytes(change((mnist / name).read_bytes()))
    with pytest.raises(DataUnavailable, match=rf"{name} is damaged\. {why}"):
        load_images(ImageTaskConfig(name="mnist"), seed=0)


def small_set(folder, n_train=600, n_test=100, *, pixels=None):
    """Write a set of one's own in MNIST's form, four small files."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for part, n in (("train", n_train), ("t10k", n_test)):
        labels = bytes(i % 10 for i in range(n))
        pictures = b"".join(bytes([9 * i if pixels is None else pixels]) * 784 for i in labels)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(idx((n,), labels))
        (raw / f"{part}-images-idx3-ubyte").write_bytes(idx((n, 28, 28), pictures))
    return raw


def test_a_set_of_any_number_of_pictures_is_taken_and_said_to_be_another(folder):
    small_set(folder)
    data = load_images(ImageTaskConfig(name="mnist", n_validation=100), seed=0)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [500, 100, 100]
    words = "This is not the official MNIST: train-images-idx3-ubyte, train-labels"
    assert words in data.remark
    assert "(600 training and 100 test pictures)" in data.remark


def test_packed_files_of_ones_own_are_taken_whatever_their_checksum(folder):
    raw = small_set(folder)
    for path in list(raw.iterdir()):
        (raw / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    data = load_images(ImageTaskConfig(name="mnist", n_validation=100), seed=0)
    assert len(data.test) == 100
    assert "not the official MNIST" in data.remark


def test_pictures_without_labels_are_counted(folder):
    raw = small_set(folder)
    (raw / "t10k-labels-idx1-ubyte").write_bytes(idx((99,), bytes(99)))
    with pytest.raises(DataUnavailable, match="has 100 t10k pictures but 99 labels"):
        load_images(ImageTaskConfig(name="mnist", n_validation=100), seed=0)


@pytest.mark.parametrize(
    ("pixels", "n_validation", "sentence"),
    [
        (0, 100, "All 500 training pictures of MNIST are the same"),
        (None, 5000, "n_validation is 5000, but MNIST has only 600 pictures"),
    ],
)
def test_pictures_that_are_too_few_or_all_the_same_are_said_to_be(
    folder, pixels, n_validation, sentence
):
    small_set(folder, pixels=pixels)
    with pytest.raises(ValueError, match=sentence):
        load_images(ImageTaskConfig(name="mnist", n_validation=n_validation), seed=0)


def test_labels_beyond_the_classes_are_noticed(mnist):
    (mnist / "t10k-labels-idx1-ubyte").write_bytes(idx((10000,), bytes([77]) * 10000))
    with pytest.raises(DataUnavailable, match="labels up to 77"):
        load_images(ImageTaskConfig(name="mnist"), seed=0)


@pytest.mark.parametrize("name", SOURCES)
def test_out_of_reach_says_where_files_go_and_what_works_without(folder, name):
    with pytest.raises(DataUnavailable) as caught:
        load_images(ImageTaskConfig(name=name), seed=0)
    sentence = str(caught.value)
    assert f"{IMAGE_TASKS[name].label} could not be downloaded" in sentence
    assert f"into {folder}" in sentence
    assert "the 5,000 MNIST digits" in sentence
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TFM_DATA_DIR", str(blocked))
    with pytest.raises(DataUnavailable, match=r"is not writable .* Set TFM_DATA_DIR"):
        load_images(ImageTaskConfig(name="mnist"), seed=0)


def test_damaged_cifar_batches_are_not_unpickled(folder):
    batches = folder / "cifar-10-batches-py"
    batches.mkdir()
    dataset = torchvision.datasets.CIFAR10
    for name, _ in (*dataset.train_list, *dataset.test_list, (dataset.meta["filename"], "")):
        (batches / name).write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(DataUnavailable, match="data_batch_1 is damaged: its checksum is not"):
        load_images(ImageTaskConfig(name="cifar-10"), seed=0)


def test_the_data_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path))
    assert data_dir() == tmp_path
    monkeypatch.delenv("TFM_DATA_DIR")
    assert str(data_dir()) == "data"


def test_torchvision_imports_in_a_fresh_process():
    code = (
        "from tfm_core.data.torchvision_import import torchvision\n"
        "from torchvision.models import vit_b_16\n"
        "import torchvision.datasets, torchvision.transforms.v2\n"
        "print(torchvision.datasets.MNIST.__name__, vit_b_16.__name__)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.split() == ["MNIST", "vit_b_16"], answer.stderr


def test_packed_files_put_there_by_hand_are_unpacked(folder, mnist_files, monkeypatch):
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    checksums = []
    for name, content in mnist_files.items():
        packed = gzip.compress(content, 1)
        (raw / f"{name}.gz").write_bytes(packed)
        checksums.append((f"{name}.gz", hashlib.md5(packed, usedforsecurity=False).hexdigest()))
    monkeypatch.setattr(torchvision.datasets.MNIST, "resources", checksums)
    assert len(load_images(ImageTaskConfig(name="mnist"), seed=0).test) == 10000


CONTENT = b"0123456789" * 20011

MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


@pytest.fixture
def mirrors(tmp_path):
    """Return the addresses of a missing file, of a damaged one and of the right one."""
    (tmp_path / "damaged").write_bytes(CONTENT[:-1])
    (tmp_path / "right").write_bytes(CONTENT)
    return [(tmp_path / name).as_uri() for name in ("missing", "damaged", "right")]


def get(addresses, path, progress=lambda done, total, words: None):
    fetch(addresses, path, md5=MD5, label="Digits", progress=progress)


def test_mirrors_are_tried_until_one_has_the_file_whole(mirrors, tmp_path):
    target = tmp_path / "new" / "file.gz"
    get(mirrors, target)
    assert target.read_bytes() == CONTENT
    assert matches(target, MD5)
    assert [path.name for path in target.parent.iterdir()] == ["file.gz"]


def test_progress_counts_to_the_end(mirrors, tmp_path):
    told = []
    get(mirrors[2:], tmp_path / "file.gz", lambda *news: told.append(news))
    done, total, words = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == len(CONTENT)
    assert set(total) == {len(CONTENT)}
    assert set(words) == {"Downloading file.gz"}


def test_when_no_mirror_has_it_the_sentence_names_each_and_nothing_stays(mirrors, tmp_path):
    target = tmp_path / "new" / "file.gz"
    with pytest.raises(DataUnavailable, match="Digits could not be downloaded") as caught:
        get(mirrors[:2], target)
    assert all(mirror in str(caught.value) for mirror in mirrors[:2])
    assert "the checksum is not" in str(caught.value)
    assert f"Put file.gz into {target.parent}" in str(caught.value)
    assert list(target.parent.iterdir()) == []


def test_a_mirror_that_cannot_be_reached_is_told_in_words(tmp_path):
    with pytest.raises(DataUnavailable, match="Connection refused") as caught:
        get(["http://127.0.0.1:9/file.gz"], tmp_path / "file.gz")
    assert "Errno" not in str(caught.value)


@pytest.mark.parametrize("content", [b"not packed", gzip.compress(CONTENT)[:-20]])
def test_a_damaged_archive_is_named(content, tmp_path):
    packed, target = tmp_path / "file.gz", tmp_path / "file"
    packed.write_bytes(content)
    with pytest.raises(DataUnavailable, match=r"file\.gz is damaged"):
        unpack_gzip(packed, target)
    assert not target.exists()


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


def augment(images, *, generator, **most):
    return moved(images, draw_moves(len(images), generator=generator, **most), **most)


def test_nothing_to_do_is_the_identity_and_moves_equal_exact_ones(images):
    assert augment(images, shift=0, rotation=0, scale=0, generator=seeded()) is images
    down, right = torch.tensor([0, 1, -2, 3, 0]), torch.tensor([0, 2, 1, -3, -1])
    exact = shifted(images, down, right)
    for before, after, dy, dx in zip(images, exact, down.tolist(), right.tolist(), strict=True):
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
    moves = augment(dots(400), shift=2, rotation=0, scale=0, generator=seeded())
    assert set(lit(moves)) == {(5 + dy, 5 + dx) for dy in range(-2, 3) for dx in range(-2, 3)}
    assert torch.equal(moves.sum((1, 2, 3)), torch.ones(400))
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
