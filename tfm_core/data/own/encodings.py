"""The encoding of bytes that declare none: names in a zip, and texts that are not UTF-8."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tfm_core.sentences import N_

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
        beside = "".join(one for one in beside if one.isascii())
        if encoding in _WESTERN:
            scores.append(float(_is_western(character, beside, encoding)))
        else:
            is_mixed = any(one.islower() for one in beside)
            scores.append(_likelihood(character, encoding) / (3 if is_mixed else 1))
    return sum(scores) / max(1, len(scores))


def _is_western(character: str, beside: str, encoding: str) -> bool:
    """Return whether a character is a letter beside letters or, in prose, a mark or alone."""
    if character.isalpha() and any(one.isalpha() for one in beside):
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
