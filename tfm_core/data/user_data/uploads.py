"""What every upload goes through: files and zips read within limits, each item read or listed.

A container (folders in a zip, arrays, tables, texts) yields items; ``read_each`` is the one loop
over them. What cannot be read keeps its reason, so nothing of an upload is lost: items kept and
items skipped are the items of the upload.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from tfm_core.choices.config.image_tasks import MAX_CLASSES
from tfm_core.data.user_data.sets import MAX_NAME, SPLITS
from tfm_core.data.user_data.tokens import Cutter
from tfm_core.data.user_picture import MAX_BYTES
from tfm_core.reading import Unreadable, zip_of
from tfm_core.sentences import N_, StudentError, whole_percent

ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
"""What reading a damaged zip, or a member of one, raises."""
IS_DAMAGED = N_("This file is damaged.")
MAX_SHARE_LEFT_OUT = 0.05
"""Of the lines of a file: more than that deserves a warning."""
_BEGINNING = 4096  # bytes that show what a file is
_MILLION = 10**6


class Limit(NamedTuple):
    """How much is read of something, and what is said where there is more."""

    most: int
    sentence: str
    per: int = 1
    """The unit of the number in the sentence."""


LIMITS = {
    # of texts
    "bytes": Limit(32 * 2**20, N_("The text has {size:,} bytes; the limit is {most:,}.")),
    # one more is read, which may be a header
    "rows": Limit(200_000, N_("The text has more than {most:,} rows. Remove some.")),
    "labels": Limit(
        100, N_("There are {n:,} labels; the limit is {most}. Is another column the label?")
    ),
    # of pictures, and of the arrays and tables that hold them
    "pictures": Limit(
        70_000, N_("There are {n:,} pictures; the limit is {fits:,} at {size} x {size} pixels.")
    ),
    "array": Limit(70_000, N_("{name} has the shape {shape}; the limit is {most:,} pictures.")),
    "lines": Limit(70_000, N_("{name} has {n:,} lines; the limit is {most:,} pictures.")),
    "cells": Limit(2**20, N_("{name} has a line of more than {most:,} cells.")),
    "arrays": Limit(12, N_("{name} has {n} arrays; the limit is {most}.")),
    "classes": Limit(
        MAX_CLASSES, N_("There are {n:,} classes; the limit is {most}. Each folder is one class.")
    ),
    # bytes of what is unpacked: the files of a zip, gzips, arrays
    "unpacked": Limit(
        400 * _MILLION,
        N_("{name} unpacks to more than {most} MB. Use fewer or smaller pictures."),
        _MILLION,
    ),
    "gzip": Limit(400 * _MILLION, N_("{name} unpacks to more than {most} MB."), _MILLION),
    "npz": Limit(
        400 * _MILLION, N_("With {name}, the arrays unpack to more than {most} MB."), _MILLION
    ),
}
MAX_FILES = 140_000
"""In a zip, and lines of a table, whether they hold pictures or not."""


class BadData(StudentError):
    """The upload cannot be used at all. encoding: the wrong one of its text, "" for no guess."""

    encoding: str | None = None


def check(limit: str, n: int, *, most: int | None = None, **values: object) -> None:
    """Raise BadData where ``n`` is more than a limit, or than ``most``."""
    usual, sentence, per = LIMITS[limit]
    most = usual if most is None else most
    if n > most:
        raise BadData(sentence, n=n, most=most // per, **values)


@dataclass(frozen=True, slots=True)
class Item:
    """What a container yields: a picture or a row of a text, where it stood, and what it is of."""

    content: Any = None  # as the container has it; a text or a picture once it is read
    label: str = ""  # the class of a picture or sentence, the target of a pair
    split: int | None = None  # a place in ``SPLITS``, where a folder or file names one
    line: int = 0  # where it begins, counted from 1
    n_lines: int = 1
    numbered: str = ""  # how a line is called, "" where the name alone says the place
    name: str = ""  # of the file
    why: str = ""  # why it is skipped, if it is
    is_cut: bool = False  # whether a text is the beginning of a longer one
    is_unclosed: bool = False  # whether the quotes of a row do not fit, so that they are text

    @property
    def place(self) -> str:
        """The place in words."""
        if not self.numbered:
            return self.name
        return N_(self.numbered, line=self.line, name=self.name)

    @property
    def texts(self) -> tuple[str, str]:
        """The source and target of a pair, or a sentence and its label."""
        return self.content, self.label

    @property
    def reason(self) -> str:
        """Why it is skipped, in a sentence on its own: that on a row says its place itself."""
        return N_("{name}: {why}", name=self.place, why=self.why) if self.name else self.why


class Remark(NamedTuple):
    """A message about an upload: a "warning" or a "note"."""

    level: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Accounting:
    """Where the lines or files of an upload ended up; the counts add up to ``total``."""

    total: int = 0
    kept: int = 0  # of the rows that a set holds
    left_out: int = 0  # of rows with a problem
    repeated: int = 0  # of duplicate rows
    blank: int = 0  # without any text
    header: int = 0  # of the names of columns, or on the format
    system: int = 0  # files that an operating system adds
    counted: str = "lines"  # or "entries" of a JSON list or a zip, or "answers" in chats

    @property
    def share_left_out(self) -> float:
        """The share of the lines with content that have a problem."""
        return self.left_out / max(1, self.total - self.blank - self.header - self.system)

    def warnings(self, skipped: Iterable[Item]) -> list[Remark]:
        """Return a warning that so much is skipped that the file is probably misread, if so."""
        if self.share_left_out <= MAX_SHARE_LEFT_OUT:
            return []
        words = N_("{share} of the file was skipped ({n} of {total}). First reason: {why}")
        share = whole_percent(self.share_left_out)
        n, total = f"{self.left_out:,}", f"{self.total:,}"
        first = next(iter(skipped)).reason
        return [Remark("warning", N_(words, share=share, n=n, total=total, why=first))]


def read_each(items: Iterable[Item], read: Callable[[Item], Item]) -> list[Item]:
    """Return every item as ``read`` does, or without its content and with why it is skipped.

    Raises BadData where ``read`` does: then no item is of use.
    """

    def outcome(item: Item) -> Item:
        try:
            return item if item.why else read(item)
        except BadData:
            raise
        except StudentError as error:
            # without what would hold a whole zip as long as the report is shown
            return replace(item, content=None, why=error.sentence)

    return [outcome(item) for item in items]


def kept(items: Iterable[Item]) -> list[Item]:
    """Return the items that are not skipped."""
    return [item for item in items if not item.why]


def skipped(items: Iterable[Item]) -> list[Item]:
    """Return the items that are skipped."""
    return [item for item in items if item.why]


def n_lines(items: Iterable[Item]) -> int:
    """Return how many lines or files items are."""
    return sum(item.n_lines for item in items)


def shown(name: str) -> str:
    """Return a file's name, printable and at most 80 characters long."""
    plain = printable(name)
    return plain if len(plain) <= 80 else f"…{plain[-79:]}"


def printable(text: str) -> str:
    """Return a text with ``?`` in the place of what cannot be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def is_zip(content: bytes) -> bool:
    """Return whether a file begins like a zip."""
    return content.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def first_bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the first bytes of a file, b"" where it is damaged."""
    try:
        with archive.open(entry) as file:
            return file.read(_BEGINNING)
    except (*ZIP_DAMAGE, RuntimeError):
        return b""


def open_zip(content: bytes, name: str, most: int) -> zipfile.ZipFile:
    """Return a zip of at most ``most`` files. Raises BadData that names it."""
    try:
        return zip_of(content, most=most)
    except Unreadable as error:
        raise BadData("{name}: {why}.", name=name, why=error.sentence) from None
    except ZIP_DAMAGE:
        raise BadData("{name} is damaged. Pack it again.", name=name) from None


def read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int = MAX_BYTES) -> bytes:
    """Return a file, whatever size its entry claims. Raises StudentError."""
    try:
        with archive.open(entry) as file:
            content = file.read(most + 1)
    except (*ZIP_DAMAGE, RuntimeError):
        raise StudentError(IS_DAMAGED) from None
    if len(content) > most:
        raise StudentError("This file unpacks to more than {most} MB.", most=most // 10**6)
    return content


# The encoding of bytes that declare none: names in a zip, and texts that are not UTF-8


ENCODINGS = {
    "utf-8": N_("Unicode (UTF-8)"),
    "cp949": N_("Korean (cp949)"),
    "cp932": N_("Japanese (cp932)"),
    "gbk": N_("Simplified Chinese (GBK)"),
    "big5": N_("Traditional Chinese (Big5)"),
    "cp866": N_("Cyrillic (cp866)"),
    "cp437": N_("Western (cp437)"),
}
"""Encodings of file names in a zip that declares none."""
TEXT_ENCODINGS = {
    **{name: ENCODINGS[name] for name in ("cp949", "cp932", "gbk", "big5")},
    "cp1252": N_("Western (Windows-1252)"),
    "cp1250": N_("Central European (Windows-1250)"),
    "cp1251": N_("Cyrillic (Windows-1251)"),
    "utf-16-le": N_("Unicode (UTF-16)"),
}
"""Encodings of a text that is not UTF-8."""

_ASCII = bytes(range(128))
_N_SAMPLED = 100_000
"""Bytes of a text from which its encoding is guessed."""
_PLAUSIBLE = 0.5
_PLAUSIBLE_FIRST = {"cp437": 0.8, "cp1252": 0.8, "cp949": 0.7}
"""Tried before all others: the bytes of common syllables are common characters in GBK."""
_WESTERN = ("cp437", "cp1252")
_OTHERS = ("cp932", "gbk", "big5", "cp866", "cp1251")
_LEADS = {
    "cp932": (range(0x88, 0x98), range(0x98, 0xEB)),
    "gbk": (range(0xB0, 0xD8), range(0xD8, 0xF8)),
    "big5": (range(0xA4, 0xC7), range(0xC9, 0xFA)),
}
"""First bytes of the common and the rarer characters of an encoding."""
_SYLLABLES = frozenset(
    "가각간갈감갑값강갖같개객갱거건걱걸검겁것게겨격견결경계고곡곤골곰공과관광괴교구국군굴궁권귀규균그극근글금급기긴"
    "길김깊까깨꺼꼬꽃꾸꿈끝끼나난날남납내냄너널네넷녀년념노녹논농높놀뇌누눈뉴느는늑능니닐다단달닭담답당대댁더덕"
    "덩데도독돈돌동돼되된두둑둘뒤드득든들등디따땅때떡또뚜뜻라락란람랑래랜량러런럼레려력련렬령례로록론롬료루류륙률"
    "륨르른를름릉리린릴림립링마막만많말망매맥맨머먹먼메며면명모목몰몸못묘무문물미민밀및바박반발밤밥방배백뱀버번벌범법베"
    "벼벽변별병보복본볼봄봉부북분불브블비빈빌빛빨빵뿌사산살삼상새색샘생샤서석선설섬성세센셀셔소속손솔송쇠쇼수숙순술숨숲"
    "쉬슈스슬습승시식신실심십싱싸쌀쓰씨아악안알암압앙애액앵야약양어억언얼엄업없에여역연열염영예오옥온올옷와완왕외요욕용우운"
    "울움웃원월위유육윤율으은을음응의이인일임입잉자작잔잠장재저적전절점접정제조족존종좋좌주죽준줄중쥐즈즉즐증지직진질집"
    "징짜찌차착찬참창채책처척천철첫청체초촌총최추축출춤충취층치친칠침카칸칼캐커컨컬컵케켓코콘콜쿠크큰클키타탁탄탈탐탑태"
    "터턱텀텔토톤통투트특튼티틀팀파판팔패퍼페펜편펭평폐포폭폰표푸품풀프플피핀필하학한할함합항해핵햄햇행향허헌험혁현협형혜호"
    "혹혼홀홈홍화확환활황회획효후훈휘휴흐흑흔흙흡희흰히힘"
)
"""Common Hangul syllables: a quarter of the 2,350 in KS X 1001, and nearly all of Korean text."""


def encoding_of_text(raw: bytes, chosen: str | None) -> str:
    """Return "utf-8" where a text is that, else the chosen or likely encoding, "utf-8" for none.

    A text that is mostly UTF-8 is damaged: in another encoding all else would be misread.
    """
    n_low, n_high = raw[::2].count(0), raw[1::2].count(0)
    if not n_low + n_high and (raw.isascii() or _decoded([raw], "utf-8")):
        return "utf-8"
    if chosen or n_low + n_high:
        return chosen or ("utf-16-le" if n_high > 8 * n_low else "utf-8")
    n_ascii = len(raw) - len(raw.lstrip(_ASCII))
    start = max(0, n_ascii - 1_000)
    words = raw[start : start + _N_SAMPLED].split()
    words = words[start > 0 : len(words) - (start + _N_SAMPLED < len(raw))]  # whole ones
    words = [word for word in words if not word.isascii()]
    n_utf_8 = sum(bool(_decoded([word], "utf-8")) for word in words)
    is_damaged = n_utf_8 > len(words) / 2
    return "utf-8" if is_damaged else likely_encoding(words, TEXT_ENCODINGS) or "utf-8"


def likely_encoding(
    names: Sequence[bytes], encodings: Collection[str] = tuple(ENCODINGS)
) -> str | None:
    """Return the encoding in which all names together read like one language, or None."""
    texts = {encoding: text for encoding in encodings if (text := _decoded(names, encoding))}
    if "utf-8" in texts:
        return "utf-8"
    for encoding, plausible in _PLAUSIBLE_FIRST.items():
        if encoding in texts and _share(texts[encoding], encoding) >= plausible:
            return encoding
    scores = {name: _share(texts[name], name) for name in _OTHERS if name in texts}
    best = max(scores, key=lambda encoding: scores[encoding], default="")
    return best if scores.get(best, 0.0) >= _PLAUSIBLE else None


def _decoded(names: Sequence[bytes], encoding: str) -> str:
    """Return the names in an encoding, one a line; "" where they cannot be in it."""
    try:
        return "\n".join(name.decode(encoding) for name in names)
    except UnicodeDecodeError:
        return ""


def _share(text: str, encoding: str) -> float:
    """Return the mean likelihood of the characters outside of ASCII.

    A character beside a small Latin letter counts a third, except in Western texts, where it is
    what is expected.
    """
    scores = []
    for at, character in enumerate(text):
        if character.isascii():
            continue
        beside = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
        beside = "".join(letter for letter in beside if letter.isascii())
        if encoding in _WESTERN:
            scores.append(float(_is_western(character, beside, encoding)))
        else:
            is_mixed = any(letter.islower() for letter in beside)
            scores.append(_likelihood(character, encoding) / (3 if is_mixed else 1))
    return sum(scores) / max(1, len(scores))


def _is_western(character: str, beside: str, encoding: str) -> bool:
    """Return whether a character is a letter beside letters or, in prose, a mark or alone."""
    if character.isalpha() and any(letter.isalpha() for letter in beside):
        return True
    is_alone = len(beside) == 2 and not beside.strip()
    return encoding == "cp1252" and (character in "“”‘’„–—…«»€¿¡°§" or is_alone)


def _likelihood(character: str, encoding: str) -> float:
    """Return from 0 to 1 how likely a character is in a text of an encoding."""
    if encoding == "cp949":
        return 1.0 if character in _SYLLABLES else 0.2 if "가" <= character <= "힣" else 0.0
    if encoding not in _LEADS:
        return 0.95 if "А" <= character <= "ё" else 0.0
    if encoding == "cp932" and "ぁ" <= character <= "ヿ":
        return 1.0  # hiragana and katakana, not those of half width
    raw = character.encode(encoding)
    if len(raw) < 2 or (encoding == "gbk" and raw[-1] < 0xA1):
        return 0.0
    common, rare = _LEADS[encoding]
    return 1.0 if raw[0] in common else 0.3 if raw[0] in rare else 0.0


MAX_PREVIEW = 50
COLUMNS = {
    "pairs": (N_("source"), N_("target")),
    "labels": (N_("sentence"), N_("label")),
    "text": (N_("line"),),
}
"""What the texts of a row are, by kind."""
_NAMES = {
    "pairs": N_("My pairs"),
    "labels": N_("My labels"),
    "text": N_("My text"),
    "pictures": N_("My pictures"),
}
_ENDING = re.compile(r"\.(csv|tsv|txt|json|jsonl|ndjson|tab|md|zip|npz|gz)$", re.IGNORECASE)

Folders = Literal["splits", "classes"]


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How a table is read: its two columns, counted from 0, and whether its first row is a header.

    first: the source of pairs, the text of labelled sentences. second: the target, or the label.
    """

    first: int
    second: int
    has_header: bool = False


@dataclass(frozen=True, slots=True)
class ReadAs:
    """How an upload is read where it can be read in several ways.

    Given to a reader, None leaves the choice to it; in ``Report.read_as``, None says that there is
    nothing to choose.
    """

    encoding: str | None = None  # of a text, or of the names in a zip; "" where none is likely
    layout: ColumnLayout | None = None  # of a table of texts
    cut_at: int | None = None  # tokens, at least 2, at which longer texts end; None skips those
    merges_labels: bool | None = None  # whether labels that differ only in case are one
    folders: Folders | None = None  # whether the outer folders are splits or classes
    is_turned: bool | None = None  # whether rows and columns are swapped, as in EMNIST


GUESSED = ReadAs()
"""Every choice is left to the reader."""


@dataclass(slots=True, eq=False)
class Report:
    """What is in an upload, before it becomes a set, and in a set; filled as it is read.

    Every row or picture is one of ``items``, each with its split, or of ``skipped``, with a reason.
    """

    kind: str
    name: str
    split: Mapping[str, object]  # as ``sets.Prepared`` has it
    items: tuple[Item, ...] = field(default=(), repr=False)
    skipped: tuple[Item, ...] = ()
    findings: tuple[Remark, ...] = ()
    refusal: str | None = None  # why none of it can be kept
    read_as: ReadAs = GUESSED
    names: tuple[str, ...] = ()  # of all columns of a table, or the outer folders of a zip
    accounting: Accounting = field(default_factory=Accounting)
    test_accounting: Accounting = field(default_factory=Accounting)
    counts: Mapping[str, int] = field(default_factory=dict)  # examples or tokens, by split
    unit: str = ""  # see ``tokens.CUTS``, of a text ``variants.units.UNITS``
    text: str = ""
    test: str = ""
    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # tokens, by column
    n_across: int = 0  # validation and test examples whose source training holds too
    cutters: tuple[Cutter, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    sample: tuple[tuple[str, ...], ...] = ()  # the first rows with all columns
    spellings: tuple[tuple[str, ...], ...] = ()  # labels written in several ways, the usual first

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the two texts of a row."""
        return COLUMNS[self.kind]

    @property
    def rows(self) -> dict[str, list[Item]]:
        """The items of each split."""
        parts: dict[str, list[Item]] = {split: [] for split in SPLITS}
        for item in self.items:
            parts[SPLITS[item.split or 0]].append(item)
        return parts

    @property
    def distinct(self) -> list[Item]:
        """The different rows; few pairs are in every split."""
        return list({(row.line, row.numbered, row.texts): row for row in self.items}.values())

    @property
    def balance(self) -> dict[str, list[int]]:
        """The examples of each label or class in each split; none of pairs and texts."""

        def key(label: str) -> tuple[list[tuple[int, int, str]], str]:  # 2 before 10
            pieces = re.findall(r"\d+|\D+", label)
            return [
                (0, int(p), p) if p.isdecimal() else (1, 0, p.casefold()) for p in pieces
            ], label

        items = self.items if self.kind in {"labels", "pictures"} else ()
        labels = sorted({row.label for row in items}, key=key)
        counts = {label: [0] * len(SPLITS) for label in labels}
        for row in items:
            counts[row.label][row.split or 0] += 1
        return counts

    @property
    def preview(self) -> tuple[tuple[str, ...], ...]:
        """The first rows as a table of ``columns``; of a text its first lines."""
        if self.kind == "text":
            lines = [line for line in self.text.split("\n", 400)[:400] if line.strip()]
            return tuple((line,) for line in lines[:MAX_PREVIEW])
        rows = sorted(self.distinct, key=lambda row: row.line)
        return tuple(row.texts for row in rows[:MAX_PREVIEW])


def set_name(name: str, kind: str) -> str:
    """Return a name in one line: of a file without its ending, or one that says the kind."""
    printable = "".join(c if c.isprintable() else " " for c in name)
    path = PurePath(printable.replace("\\", "/"))
    stem = path.stem if _ENDING.search(printable) else printable
    return " ".join(stem.split())[:MAX_NAME].strip() or str(_NAMES[kind])
