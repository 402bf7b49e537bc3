"""Which columns of a file are used, and whether its first row names them: a guess to confirm.

A page presets its controls with the guess; what a person chooses there is what counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tfm_core.data.user_data.records import INSTRUCTION, Cells, Records
from tfm_core.data.user_data.uploads import ColumnLayout

_N_SAMPLED = 2_000  # rows that a guess looks at, spread over the file
_MAX_NAME = 40  # characters of a column's name

_COLUMN_NAMES = {
    "text": """
        text sentence review document comment content tweet utterance message body title headline
        premise question query phrase input 문장 텍스트 리뷰 본문 내용 댓글 질문 文 文章 本文
        テキスト レビュー 文本 句子 内容 评论 satz texte texto frase oración testo текст
        предложение отзыв
    """,
    "label": """
        label labels sentiment class category emotion intent topic target tag polarity y output
        rating stars score 레이블 라벨 감정 감성 분류 카테고리 평점 ラベル 感情 分類 カテゴリ 标签
        情感 类别 klasse kategorie stimmung étiquette classe catégorie etiqueta clase categoría
        sentimiento etichetta categoria метка класс категория тональность
    """,
    "source": """
        source src input from question prompt instruction original x 원문 질문 입력 원본 原文 質問
        入力 问题 源语言 quelle frage entrada origen fuente pregunta origem pergunta fonte domanda
        источник оригинал вопрос
    """,
    "target": """
        target tgt output to answer response reply translation correction y 번역문 번역 답변 대답
        정답 출력 訳文 翻訳 回答 出力 译文 翻译 目标语言 ziel antwort übersetzung cible réponse
        traduction salida destino respuesta traducción resposta tradução risposta traduzione
        перевод ответ цель
    """,
    "language": """
        english german french spanish italian portuguese dutch russian korean japanese chinese
        arabic hindi turkish vietnamese thai polish czech swedish greek hebrew ukrainian
        indonesian en de fr es it pt nl ru ko kr ja jp zh cn ar hi tr vi th pl eng deu ger fra spa
        ita kor jpn zho cmn rus deutsch englisch français anglais español inglés italiano
        português 한국어 영어 일본어 중국어 독일어 프랑스어 日本語 英語 韓国語 中文 英文 русский
        английский
    """,
    "other": """
        id idx index no num nr number # attribution license licence split set date time author
        user url link lang language version timestamp doc_id user_id guid notetype deck 번호
        아이디 날짜 番号 编号 номер name
    """,
}
"""What columns are called in files of several languages, by what they hold."""
_NAMES = {role: names.split() for role, names in _COLUMN_NAMES.items()}
# the joined column comes before its parts
_NAMES["source"].insert(0, INSTRUCTION)
_KNOWN = {name for names in _NAMES.values() for name in names}
_END_OF_SENTENCE = re.compile(r"[.!?…。！？؟।]\W*$")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?%?")


def guess(kind: str, records: Records) -> ColumnLayout:
    """Return the likely layout of a table of "pairs" or "labels"."""
    step = max(1, len(records.records) // _N_SAMPLED)
    rows = [record.content for record in records.records]
    has_header = not records.names and _is_header(rows[0], rows[1::step][:_N_SAMPLED])
    names = tuple(cell or "" for cell in rows[0]) if has_header else records.names
    body = rows[has_header::step] or rows
    table = _Table(
        [_normal(name) for name in names], [_Column(cells) for cells in zip(*body, strict=True)]
    )
    first, second = (_labelled if kind == "labels" else _pair)(table)
    return ColumnLayout(first, second, has_header)


class _Column:
    """What is known about the values of a column."""

    def __init__(self, cells: Cells) -> None:
        values = [cell.strip() for cell in cells if cell is not None and cell.strip()]
        self.values = values
        self.counts = Counter(values)
        self.is_text = len(values) > 0 and None not in cells
        self.is_number = bool(values) and _share(map(_is_number, values)) >= 0.95
        self.is_index = self.is_number and len(self.counts) == len(values)
        self.length = sum(map(len, values)) / max(1, len(values))

    @property
    def repeats(self) -> bool:
        """Whether its values are few, and occur again and again, as labels do."""
        return len(self.counts) <= max(2, len(self.values) // 4)


@dataclass(frozen=True, slots=True)
class _Table:
    """The names of the columns, or none, and what is known about each."""

    names: Sequence[str]
    columns: Sequence[_Column]

    def named(self, candidates: Sequence[str], *, without: Sequence[int] = ()) -> int | None:
        """Return the column with text whose name comes first in a list."""
        numbered = enumerate(zip(self.names, self.columns, strict=False))
        places = {
            name: at for at, (name, column) in numbered if at not in without and column.is_text
        }
        return next((places[name] for name in candidates if name in places), None)

    def texts(self) -> list[int]:
        """Return the columns that may hold texts, in their order."""
        numbered = list(enumerate(self.columns))
        texts = [at for at, column in numbered if column.is_text and not column.is_index]
        free = [at for at in texts if not (self.names and self.names[at] in _NAMES["other"])]
        return free or texts or [at for at, _one in numbered]


def _labelled(table: _Table) -> tuple[int, int]:
    """Return the column of the texts and that of the labels."""
    label = table.named(_NAMES["label"])
    if label is None:
        free = table.texts()
        several = [at for at in free if len(table.columns[at].counts) > 1]
        few = several if len(several) > 1 or len(free) == 1 else free
        label = min(few or free, key=lambda at: (len(table.columns[at].counts), -at))
    text = table.named(_NAMES["text"], without=[label])
    if text is None:
        free = [at for at in table.texts() if at != label]
        free = free or [at for at in range(len(table.columns)) if at != label]
        text = max(free, key=lambda at: (table.columns[at].length, -at))
    return text, label


def _pair(table: _Table) -> tuple[int, int]:
    """Return the column of the sources and that of the targets."""
    source = table.named(_NAMES["source"])
    target = table.named(_NAMES["target"], without=[] if source is None else [source])
    if source is not None and target is not None:
        return source, target
    languages = [at for at, name in enumerate(table.names) if name in _NAMES["language"]]
    if len(languages) >= 2:
        return languages[0], languages[1]
    free = table.texts()
    varied = [at for at in free if not table.columns[at].repeats]  # no codes of languages or splits
    if len(varied) >= 2:
        free = varied
    free = [*free, *(at for at in range(len(table.columns)) if at not in free)]
    if source is not None:
        return source, next(at for at in free if at != source)
    if target is not None:
        return next(at for at in free if at != target), target
    return free[0], free[1]


def _is_header(head: Cells, body: Sequence[Cells]) -> bool:
    """Return whether a first row is unlike the others, as names of columns are."""
    if head[0] == "" and list(head[1:]) == [str(n) for n in range(len(head) - 1)]:
        return True  # a table of pandas without names, behind its index
    names = [_normal(cell or "") for cell in head]
    filled = [at for at, name in enumerate(names) if name]
    if not filled or None in head or not body:
        return False
    if any(not _is_name(head[at] or "") for at in filled):
        return False
    if len({names[at] for at in filled}) < len(filled):
        return False
    known = {at for at in filled if names[at] in _KNOWN}
    unlike = {at for at in filled if _is_unlike(head, body, at)}
    again = {at for at in filled if any(_normal(row[at] or "") == names[at] for row in body)}
    if again:
        return False
    if len(known) == len(filled):
        return not any(all(_normal(cell or "") in _KNOWN for cell in row) for row in body[:5])
    return bool(unlike) and len(known | unlike) >= max(2, 0.6 * len(filled))


def _is_unlike(head: Cells, body: Sequence[Cells], at: int) -> bool:
    """Return whether the first cell of a column is unlike the cells below it."""
    cell = (head[at] or "").strip()
    column = _Column(tuple(row[at] for row in body))
    values = column.values
    if len(values) < 4:
        return False
    if column.is_number:
        return True  # a name above numbers
    if len(cell.split()) > 2:
        return False
    if column.repeats:
        return cell not in column.counts
    if (script := _script(cell)) and _share(
        _script(value) == script for value in values[:200]
    ) < 0.05:
        return True
    is_longer = _share(len(value) > len(cell) for value in values) >= 0.95
    return is_longer and min(map(len, values[:5])) > 1.5 * len(cell)


def _is_name(cell: str) -> bool:
    """Return whether a cell may be the name of a column: short, no sentence, no number."""
    text = cell.strip()
    return (
        len(text) <= _MAX_NAME
        and len(text.split()) <= 4
        and not _END_OF_SENTENCE.search(text)
        and not _is_number(text)
    )


def _normal(name: str) -> str:
    """Return a name in small letters, of a JSON object inside only the last part."""
    words = " ".join(unicodedata.normalize("NFC", name).casefold().split())
    return words.strip(".").rpartition(".")[2]


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _share(truths: Iterable[bool]) -> float:
    values = list(truths)
    return sum(values) / max(1, len(values))


def _script(text: str) -> str:
    """Return the script of most letters: "LATIN", "HANGUL", "CJK" …; "" without letters."""
    scripts = Counter(_script_of(sign) for sign in text if sign.isalpha())
    return scripts.most_common(1)[0][0] if scripts else ""


@lru_cache(maxsize=4096)
def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    return "CJK" if name in {"HIRAGANA", "KATAKANA"} else name
