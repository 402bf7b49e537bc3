"""What a page says in English though its language is another: text that no catalogue knows."""

import re
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import text_task
from tfm_core.facts.architectures import ARCHITECTURES

LISTEN = """if (!window.drawnTexts) {
    window.drawnTexts = new Set();
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        window.drawnTexts.add(String(text));
        return fillText.call(this, text, ...rest);
    };
}"""
"""JavaScript, to run before a page's own: keep what is written on canvases."""
_TEXTS = (Path(__file__).parent / "untranslated.js").read_text(encoding="utf-8")
_STAYS = (
    r"English",  # the name of a language is in that language
    r"[A-Z]\w*-(base|large|small)",  # models
    *(re.escape(known.label) for known in ARCHITECTURES.values()),
    r"https?://.*|data:.*",
    r"[•\W\d]*[A-Z]{2,}[\w., •]*",  # PNG, CPU, TOML
    r"\W*<\w+>.*",  # tokens such as <eos>
    r"[\W\d]*[\w–]*[._][\w.–=/ ]*",  # names of settings, modules and files
    r".*\b(19|20)\d\d\b.*",  # papers
    r"[\d.,]+ ?(KiB|MiB|GiB|[KMG]? ?MAC)\b.*",
    r"(weight|bias|table) [\dx ]+(, bias \d+)?",  # parameters
    r"[xyb](\[\d\])* = .*",
    r".*\b(sqrt|softmax|log|exp|view|einsum)\b.*",
)
"""What is alike in every language: code, papers, units, names of formats."""
_OF_PAGES = {
    "parameters": [r"[a-z_]+"],  # modules in the drawing
    "numbers": [r"[a-z_]+", r"[a-z]{1,8}( \+ [a-z]{1,8})?"],  # functions, pieces of words
}


@cache
def _words_of_data() -> frozenset[str]:
    """Return all words that a recorded model reads or writes."""
    found = {"circle", "cross", "square", "triangle", "four", "shapes"}  # of the example set
    found |= {"positive", "negative", "neutral"}
    for preset in PRESETS.values():
        task = preset.experiment.task
        if task.kind == "text":
            known = text_task(task)
            for vocabulary in (known.src_vocabulary, known.tgt_vocabulary):
                found |= {token.casefold() for token in vocabulary.tokens}
    captions = "zero one two three four five six seven eight nine a left right of above below"
    typed = "i love ai the cat sees the small smallest dog dogs very not qk kᵀ bos eos pad unk cls"
    return frozenset(found | set(captions.split()) | set(typed.split()))


def untranslated(page: Page, name: str) -> list[tuple[str, str]]:
    """Return where and what a page of the app says in English; name: that of its row."""
    stays = re.compile("|".join((*_STAYS, *_OF_PAGES.get(name, []))), re.DOTALL)
    data = _words_of_data()
    return [
        (where, text)
        for where, text in page.evaluate(_TEXTS)
        if not stays.fullmatch(text)
        and not {word.casefold() for word in re.findall(r"[A-Za-z]{2,}", text)} <= data
    ]
