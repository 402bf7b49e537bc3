"""Names in an upload: their encoding, and folders as splits and classes.

A zip marks UTF-8 names with a flag (APPNOTE 4.4.4, bit 11). Without it Windows writes them in the
code page of its language, and Python reads them as cp437.
"""

from __future__ import annotations

import os
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfm_core.data.own.pictures import ENCODINGS, PARTS, Folders, Part, part_of, shown
from tfm_core.sentences import Paragraph, StudentError

_UTF_8 = 0x800
_PLAUSIBLE_KOREAN, _PLAUSIBLE_WESTERN, _PLAUSIBLE = 0.7, 0.8, 0.5
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


def named(entries: Sequence[zipfile.ZipInfo], encoding: str | None) -> tuple[list[str], str | None]:
    """Return the name of each entry, and the encoding used, None where all are declared.

    encoding: a key of ``ENCODINGS``, or None to guess. Names are in NFC, with / between folders.
    """
    doubtful = [raw for entry in entries if (raw := _undeclared(entry)) is not None]
    used = None
    if doubtful:
        used = encoding if encoding in ENCODINGS else likely_encoding(doubtful)
    names = []
    for entry in entries:
        raw = _undeclared(entry)
        name = entry.filename if raw is None or used is None else raw.decode(used, "replace")
        names.append(unicodedata.normalize("NFC", name.replace("\\", "/")))
    return names, used


def likely_encoding(names: Sequence[bytes]) -> str:
    """Return the encoding in which all names together read like one language."""
    texts = {encoding: text for encoding in ENCODINGS if (text := _decoded(names, encoding))}
    if "utf-8" in texts:
        return "utf-8"
    if _share(texts["cp437"], _western) >= _PLAUSIBLE_WESTERN:
        return "cp437"
    if "cp949" in texts and _share(texts["cp949"], _korean) >= _PLAUSIBLE_KOREAN:
        return "cp949"  # the same bytes are common characters in GBK
    scores = {
        encoding: _share(texts[encoding], score)
        for encoding, score in _SCORES.items()
        if encoding in texts
    }
    best = max(scores, key=lambda encoding: scores[encoding], default="cp437")
    return best if scores.get(best, 0.0) >= _PLAUSIBLE else "cp437"


def _undeclared(entry: zipfile.ZipInfo) -> bytes | None:
    """Return the bytes of a name of undeclared encoding, else None."""
    if entry.flag_bits & _UTF_8 or entry.orig_filename.isascii():
        return None
    read = entry.orig_filename.split("\0")[0]
    if entry.filename not in (read, read.replace(os.sep, "/")):
        return None  # an extra field says the name in Unicode, and Python took it
    return read.encode("cp437")


def _decoded(names: Sequence[bytes], encoding: str) -> str:
    """Return the names in an encoding, one a line; "" where they cannot be in it."""
    try:
        return "\n".join(name.decode(encoding) for name in names)
    except UnicodeDecodeError:
        return ""


def _share(text: str, score: Callable[[str, str], float]) -> float:
    """Return the mean score of the characters outside of ASCII.

    score(character, neighbours): from 0 to 1, how likely it is. A character beside a small Latin
    letter counts a third, except for Western names, where it is what is expected.
    """
    scores = []
    for at, character in enumerate(text):
        if character.isascii():
            continue
        beside = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
        beside = "".join(one for one in beside if one.isascii())
        mixed = score is not _western and any(one.islower() for one in beside)
        scores.append(score(character, beside) / (3 if mixed else 1))
    return sum(scores) / max(1, len(scores))


def _western(character: str, beside: str) -> float:
    return float(character.isalpha() and any(one.isalpha() for one in beside))


def _korean(character: str, _beside: str) -> float:
    if character in _SYLLABLES:
        return 1.0
    return 0.2 if "가" <= character <= "힣" else 0.0


def _japanese(character: str, _beside: str) -> float:
    if "ぁ" <= character <= "ヿ":  # hiragana and katakana, not those of half width
        return 1.0
    return _by_lead(character, "cp932", common=(0x88, 0x97), rare=(0x98, 0xEA))


def _simplified(character: str, _beside: str) -> float:
    raw = character.encode("gbk")
    return 0.0 if raw[-1] < 0xA1 else _by_lead(character, "gbk", (0xB0, 0xD7), (0xD8, 0xF7))


def _traditional(character: str, _beside: str) -> float:
    return _by_lead(character, "big5", common=(0xA4, 0xC6), rare=(0xC9, 0xF9))


def _cyrillic(character: str, _beside: str) -> float:
    return 0.95 if "А" <= character <= "ё" else 0.0


def _by_lead(
    character: str, encoding: str, common: tuple[int, int], rare: tuple[int, int]
) -> float:
    """Return 1 for a character of the common level of an encoding, 0.3 for the rarer one."""
    raw = character.encode(encoding)
    if len(raw) < 2:
        return 0.0
    if common[0] <= raw[0] <= common[1]:
        return 1.0
    return 0.3 if rare[0] <= raw[0] <= rare[1] else 0.0


_SCORES: dict[str, Callable[[str, str], float]] = {
    "cp932": _japanese,
    "gbk": _simplified,
    "big5": _traditional,
    "cp866": _cyrillic,
}


Path = tuple[str, ...]
"""Folders from the outermost to the innermost."""

Place = tuple[int | None, str]
"""A split as its place in ``PARTS``, where one is named, and the folder of a class."""


@dataclass(frozen=True, slots=True)
class FolderLayout:
    """Where the folders of the classes are.

    wrapper: folders around all others. splits: for each folder of a split, the split and the
    folders in it around the classes; None where there are no splits above the classes.
    is_split_inside: whether splits are folders in those of the classes. names: the folders that
    are splits or classes where both are possible, else none.
    """

    wrapper: Path
    splits: Mapping[str, tuple[Part, Path]] | None = None
    is_split_inside: bool = False
    names: tuple[str, ...] = ()

    def place(self, folder: Path) -> Place | None:
        """Return the split and the class of a folder, None where it is in no class folder."""
        rest = _without(folder, self.wrapper)
        if not rest:
            return None
        if self.is_split_inside:
            part = part_of(rest[1]) if len(rest) > 1 else None
            return None if part is None else (PARTS.index(part), rest[0])
        if self.splits is None:
            return None, rest[0]
        if rest[0] not in self.splits:
            return None
        part, inner = self.splits[rest[0]]
        rest = _without(rest[1:], inner)
        return (PARTS.index(part), rest[0]) if rest else None


def layout_of(folders: Sequence[Path], choice: Folders | None = None) -> FolderLayout:
    """Return what the folders of pictures mean, one for each picture.

    choice: what the outer folders are, where they may be splits or classes. Raises StudentError
    where they are splits without classes in them.
    """
    different = {folder for folder in folders if folder}
    wrapper: Path = ()
    while len({folder[0] for folder in different}) == 1 and any(len(one) > 1 for one in different):
        wrapper += (next(iter(different))[0],)
        different = {folder[1:] for folder in different if len(folder) > 1}
    names = sorted({folder[0] for folder in different})
    parts = {name: part for name in names if (part := part_of(name))}
    has_inner = any(len(folder) > 1 and folder[0] in parts for folder in different)
    kinds = set(parts.values())
    if not has_inner:
        if len(kinds) > 1:
            quoted = ", ".join(f"“{shown(name)}”" for name in parts)
            raise StudentError(Paragraph("own-data/splits-without-classes", names=quoted))
        inner = {part_of(folder[1]) if len(folder) > 1 else None for folder in different}
        is_inside = len(names) > 1 and None not in inner and len(inner) > 1
        return FolderLayout(wrapper, is_split_inside=is_inside)
    is_clear = len(kinds) > 1 and len(parts) == len(names)
    guess: Folders = "splits" if len(kinds) > 1 or len(parts) == len(names) else "classes"
    ambiguous = () if is_clear else tuple(names)
    if (choice or guess) == "classes":
        return FolderLayout(wrapper, names=ambiguous)
    return FolderLayout(wrapper, _splits(different, parts), names=ambiguous)


def _splits(folders: Iterable[Path], parts: Mapping[str, Part]) -> dict[str, tuple[Part, Path]]:
    """Return the split of each folder, and the folders in it that are around the classes."""
    inner: dict[str, Path] = {}
    below: dict[str, set[Path]] = {name: set() for name in parts}
    for folder in folders:
        if folder[0] in parts and len(folder) > 1:
            below[folder[0]].add(folder[1:])
    for name, rests in below.items():
        inner[name] = ()
        while (only := _only(rests)) and part_of(only) == parts[name]:  # seg_train/seg_train/cat
            inner[name] += (only,)
            rests = below[name] = {rest[1:] for rest in rests if len(rest) > 1}
    while all(_only(rests) for rests in below.values() if rests):  # train/images/cat
        for name, rests in below.items():
            if only := _only(rests):
                inner[name] += (only,)
                below[name] = {rest[1:] for rest in rests if len(rest) > 1}
    return {name: (part, inner[name]) for name, part in parts.items()}


def _only(rests: Iterable[Path]) -> str:
    """Return the first folder if all share it and some have folders below it, else ""."""
    first = {rest[0] for rest in rests}
    return first.pop() if len(first) == 1 and any(len(rest) > 1 for rest in rests) else ""


def _without(folder: Path, outer: Path) -> Path:
    """Return a folder below an outer one, () where it is not below it."""
    return folder[len(outer) :] if folder[: len(outer)] == outer else ()
