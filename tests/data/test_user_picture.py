import io
import zlib

import numpy as np
import pytest
from PIL import Image, ImageFile

from tfm_core.choices.config import IMAGE_TASKS
from tfm_core.data.user_picture import picture_to_input

DIGITS, CLOTHES, COLOURS = (IMAGE_TASKS[name] for name in ("mnist", "fashion-mnist", "cifar-10"))


def stroke(height=120, width=90, ground=0, ink=255):
    """Return a picture with one upright stroke, off the middle."""
    picture = np.full((height, width), ground, np.uint8)
    picture[10:70, 15:25] = ink
    return picture


def as_png(picture):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("facts", "channels"), [*zip(IMAGE_TASKS.values(), [None, 3, 4, None], strict=False)]
)
def test_every_kind_of_picture_fits_every_task(facts, channels):
    picture = stroke()
    if channels:
        picture = np.repeat(picture[..., None], channels, -1)
    for given in (picture, as_png(picture)):
        fitted, notes = picture_to_input(given, facts)
        assert fitted.shape == (facts.channels, facts.image_size, facts.image_size)
        assert fitted.dtype == np.uint8
        assert notes


def test_a_digit_is_placed_as_in_mnist():
    fitted, notes = picture_to_input(stroke(), DIGITS)
    rows, columns = np.nonzero(fitted[0] > 30)
    assert rows.max() - rows.min() + 1 == 20
    assert abs(rows.mean() - 13.5) <= 1
    assert abs(columns.mean() - 13.5) <= 1
    assert fitted.max() == 255
    assert notes == ["Resized from 90 x 120 to 28 x 28 pixels and centred, as in MNIST."]


def test_dark_on_bright_is_inverted_and_said():
    bright, notes = picture_to_input(stroke(ground=255, ink=0), DIGITS)
    np.testing.assert_array_equal(bright, picture_to_input(stroke(), DIGITS)[0])
    assert notes[0] == "Inverted to light on dark, as in the task."


def test_pale_strokes_become_bright():
    assert picture_to_input(stroke(ground=20, ink=120), DIGITS)[0].max() == 255


@pytest.mark.parametrize("ink", [0, 255])
def test_strokes_on_nothing_are_seen(ink):
    clear = np.zeros((120, 90, 4), np.uint8)
    clear[10:70, 15:25] = (ink, ink, ink, 255)
    np.testing.assert_array_equal(
        picture_to_input(as_png(clear), DIGITS)[0], picture_to_input(stroke(), DIGITS)[0]
    )


def test_a_picture_of_the_right_size_stays_as_it_is():
    picture = stroke()[5:33, 10:38]
    fitted, notes = picture_to_input(picture, DIGITS)
    np.testing.assert_array_equal(fitted[0], picture)
    assert notes == []


def test_colours_are_kept_where_the_task_has_them():
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[..., 0] = 200
    fitted, _ = picture_to_input(picture, COLOURS)
    assert fitted.mean((1, 2)).tolist() == [200, 0, 0]


def test_a_wide_picture_is_cut_to_its_middle():
    _, notes = picture_to_input(stroke(60, 90)[:, :80], CLOTHES)
    assert notes[0] == "Cropped to the centre square."


def as_file(kind):
    file = io.BytesIO()
    Image.fromarray(stroke()).save(file, kind)
    return file.getvalue()


NOT_TRIED = r"not a picture|not supported|text file"
NO_PICTURES = [(5,), (5, 5, 2), (0, 5), (2, 5, 5, 3)]


def test_what_is_no_picture_is_refused_by_what_it_is():
    for content, sentence in [
        (b"", "empty"),
        (bytes(50), "empty"),
        (b"hello", "text file"),
        ("안녕하세요".encode(), "text file"),
        ("caf\xe9 au lait".encode("latin-1"), "text file"),
        (b"BMW is a car", "text file"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"<svg></svg>", "SVG files are not"),
        (b"%PDF-1.7 ...", "PDF files are not"),
        (b"\0\0\0\x18ftypheic" + bytes(20), "HEIC files are not"),
        (as_png(stroke())[:90], "PNG file is cut off"),
        (as_file("JPEG")[:-300], "JPEG file is cut off"),
        (as_file("GIF")[:-300], "GIF file is cut off"),
        (as_file("WEBP")[:-30], "WebP file is cut off"),
        (as_file("BMP")[:-300], "BMP file is cut off"),
        (as_png(stroke())[:8] + b"nothing", "PNG file is damaged"),
        (b"\x07\x81\x99\xfe" * 9, "not a picture"),
        (bytes(10_100_000), r"10\.1 MB; the limit is 10"),
        *((as_file(kind), NOT_TRIED) for kind in ("TIFF", "EPS", "PPM", "ICO")),
        *((np.full((40, 50), ground, np.uint8), "is blank") for ground in (0, 128, 255)),
        *((np.zeros(shape, np.uint8), r"Use uint8 \(height, width\)") for shape in NO_PICTURES),
    ]:
        with pytest.raises(ValueError, match=sentence):
            picture_to_input(content, DIGITS)


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        (9_000, "9000 x 9000 pixels; the limit is 12"),
        (50_000, "too many pixels; the limit is 12"),
    ],
)
def test_pixels_are_counted_before_any_is_decoded(monkeypatch, side, sentence):
    forged = bytearray(as_png(stroke()))
    forged[16:24] = side.to_bytes(4, "big") * 2
    forged[29:33] = zlib.crc32(forged[12:29]).to_bytes(4, "big")
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda _image: pytest.fail("it was decoded"))
    with pytest.raises(ValueError, match=sentence):
        picture_to_input(bytes(forged), DIGITS)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_photograph_is_made_small_at_once_and_its_notes_say_how_large_it_was(kind, monkeypatch):
    seen = []
    convert = Image.Image.convert

    def counted(image, *rest, **more):
        seen.append(image.size)
        return convert(image, *rest, **more)

    monkeypatch.setattr(Image.Image, "convert", counted)
    file, photo = io.BytesIO(), Image.fromarray(stroke()).resize((2400, 3200))
    exif = photo.getexif()
    exif[0x0112] = 6  # taken with the camera on its side
    photo.save(file, kind, exif=exif)
    fitted, notes = picture_to_input(file.getvalue(), DIGITS)
    assert fitted.shape == (1, 28, 28)
    assert "Resized from 3200 x 2400 to 28 x 28" in notes[-1]
    assert max(max(size) for size in seen) <= 1600


def test_of_a_moving_picture_the_first_is_read():
    frames = [Image.fromarray(stroke()), *(Image.new("L", (120, 90), n) for n in range(200))]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    still = picture_to_input(as_png(stroke()), DIGITS)[0]
    read = picture_to_input(file.getvalue(), DIGITS)[0]
    assert np.abs(read.astype(int) - still).mean() < 2


def test_a_forged_exif_is_no_error_of_the_server():
    file = io.BytesIO()
    Image.fromarray(stroke()).save(file, "JPEG", exif=b"Exif\x00\x00II*\x00" + bytes(60_000))
    assert picture_to_input(file.getvalue(), DIGITS)[0].shape == (1, 28, 28)


def test_the_twelve_bits_of_a_scanner_are_not_black():
    values = np.zeros((28, 28), np.uint16)
    values[9:19] = 4095
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    fitted, notes = picture_to_input(file.getvalue(), IMAGE_TASKS["mnist"])
    assert fitted.max() == 255
    assert fitted.min() == 0
    assert "Stretched from 12 bits to 8." in notes
