"""The terms of the search: each leads to a page, as it is where the term is taught."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.linked_views import VIEWS
from pages import i18n
from pages.components.files import FOLDER
from pages.ui.address import view_link
from pages.ui.navigation import terms
from pages.ui.navigation.frame import _entries
from pages.ui.navigation.page_table import PAGES
from pages.ui.navigation.terms import BY_KEY, BY_SETTING, TERMS
from tfm_core.anatomy.names import NOTEBOOK_NAMES
from tfm_core.presets import PRESETS


def test_no_two_terms_or_pages_share_a_name() -> None:
    names = [term.name for term in TERMS] + [page.title for page in PAGES.values()]
    assert len({name.casefold() for name in names}) == len(names)


def test_a_term_has_one_line_and_its_page_follows_its_link() -> None:
    for term in TERMS:
        assert len(term.sentences[0]) <= 80
        assert all(sentence.endswith(".") for sentence in term.sentences)
        facts = PAGES[term.page]
        if not term.view:
            continue
        if facts.name == "attention":  # which deeper parts there are is said by the run
            assert set(term.view) == {"deeper"}
            continue
        view, sentences = view_link.read(VIEWS[facts.name], dict(term.view))
        assert not sentences
        assert view_link.write(view).items() <= dict(term.view).items()


def test_a_setting_is_taught_by_one_term_and_every_such_setting_exists() -> None:
    assert len(BY_SETTING) == sum(len(term.settings) for term in TERMS)
    known = {
        name
        for preset in PRESETS.values()
        for part in preset.experiment.model_dump().values()
        if isinstance(part, dict)
        for name in part
    }
    assert set(BY_SETTING) <= known


def keys(text: str) -> list[str]:
    return re.findall(r"\(#term-([a-z0-9-]+)\)", text)


def test_a_term_is_marked_at_its_first_use_on_a_page_and_stays_with_its_text() -> None:
    terms.begin()
    first = "A mask hides padding; the mask is a tensor of weights."
    assert terms.marked(first) == (
        "A [mask](#term-mask) hides [padding](#term-padding); "
        "the mask is a [tensor](#term-tensor) of weights."
    )
    assert terms.marked("Another mask.") == "Another mask."
    assert keys(terms.marked(first)) == ["mask", "padding", "tensor"]  # drawn again
    terms.begin()
    assert keys(terms.marked("Another Mask.")) == ["mask"]


@pytest.mark.parametrize(
    "text",
    [
        "`mask` and `x.softmax(-1)`",
        "$softmax(x)$",
        "[the mask](https://example.org/mask)",
        "# Mask",
        "```python\nmask = 1\n```",
        "unmasked, mask-like, softmaxed",
        "<b title='mask'></b>",
    ],
)
def test_code_formulas_links_headings_and_other_words_are_left_alone(text: str) -> None:
    terms.begin()
    assert terms.marked(text) == text


def test_the_longest_term_wins_and_every_form_belongs_to_one_term() -> None:
    terms.begin()
    assert keys(terms.marked("The causal mask of gradient checkpointing.")) == [
        "causal-mask",
        "gradient-checkpointing",
    ]
    forms = [form.casefold() for term in TERMS for form in term.forms]
    assert len(set(forms)) == len(forms)
    assert len(BY_KEY) == len(TERMS)


def test_elsewhere_a_term_is_marked_by_its_name_there(monkeypatch: pytest.MonkeyPatch) -> None:
    terms.begin()
    monkeypatch.setattr(terms, "language", lambda: "yy")
    assert keys(terms.marked("softmax, the Softmax를")) == ["softmax"]


def test_bold_terms_before_a_particle_stay_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    terms.begin()
    monkeypatch.setattr(terms, "language", lambda: "yy")
    link = f"({terms.ADDRESS}logit)"
    assert (
        terms.marked("**Logit**은, **log softmax**는") == f"[**Logit**]{link}은, **log softmax**는"
    )
    assert keys(terms.marked("**softmax** 뒤, softmax")) == ["softmax"]


def test_the_glossary_shows_every_term_and_where_it_is(open_page: Callable[..., AppTest]) -> None:
    app = open_page("glossary/page.py")
    assert not app.exception
    links = [link.proto for link in app.get("page_link")]
    for term in TERMS:
        (link,) = [one for one in links if one.label.startswith(f"**{term.name}** ")]
        assert link.page == PAGES[term.page].url_path
        assert all(sentence in link.label for sentence in term.sentences)


def test_a_term_is_found_by_every_name_that_the_notebooks_have_for_a_part() -> None:
    also = {word for term in TERMS for word in term.also.split()}
    named = {theirs for names in NOTEBOOK_NAMES.values() for theirs in names}
    assert named <= also


def test_what_the_search_shows_has_no_marks_of_markdown() -> None:
    for entry in _entries("en", ""):
        assert not re.search(r"\*\*|`|\]\(", entry.about), entry.about


def test_the_english_name_finds_a_term_in_every_language() -> None:
    with i18n.speaking("ko"):
        entries = {entry.name: entry for entry in _entries("ko", "")}
    assert entries["인과 마스크"].also.startswith("Causal mask ")
    assert entries["마스크"].also


NODE = shutil.which("node")
FOUND = {  # what is typed -> the first thing that is found
    "fc1": "Feed-forward network",
    "addnorm": "Residual connection",
    "EncoderBlock": "Encoder",
    "num_heads": "Attention head",
    "embed_size": "Embedding",
    "make_src_mask": "Padding mask",
    "make_tgt_mask": "Causal mask",
    "look-ahead mask": "Causal mask",
    "W_Q": "Query, key, value",
    "hidden_dim": "Feed-forward network",
    "head_dim": "Attention head",
    "fc_out": "Attention head",
    "energy": "Scaled dot product",
    "d_k": "Scaled dot product",
    "patchify": "Vision Transformer",
    "class_token": "CLS token",
    "masked_fill": "Mask",
    "My_MHA": "Attention head",
    "MyVIT": "MyVIT",
    "SimpleTransformer": "Models of the study notebooks",
    "Encoder(3, 16, 4, 2)": "Models of the study notebooks",
    "addnorm2": "Residual connection",
    "ln2": "Layer normalisation",
    "cross_attn": "Cross-attention",
    "dec_embed": "Embedding",
    "print(model)": "Your notebook",
    "노트북": "Your notebook",
    "lm_head": "Names in other libraries",
    "hook_pattern": "Names in other libraries",
    "번역": "Encoder-decoder",
    "옵티마이저": "Optimiser",
    "어텐션": "How attention works",
    "마스크": "Mask",
    "패딩": "Padding mask",
    "위치 인코딩": "Positional encoding",
    "혼동 행렬": "Confusion matrix",
}


@pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")
def test_names_of_code_and_korean_words_find_their_term(tmp_path: Path) -> None:
    assert NODE is not None
    entries = [{"name": page.title, "also": "", "about": ""} for page in PAGES.values()]
    entries += [{"name": t.name, "also": t.also, "about": t.sentences[0]} for t in TERMS]
    script = tmp_path / "find.mjs"
    script.write_text(
        f"import {{ matching }} from {json.dumps(str(FOLDER / 'matching.js'))};\n"
        f"const entries = {json.dumps(entries)};\n"
        f"const first = (typed) => matching(entries, typed)[0]?.entry.name;\n"
        f"console.log(JSON.stringify({json.dumps(list(FOUND))}.map(first)));\n",
        encoding="utf-8",
    )
    done = subprocess.run([NODE, script], capture_output=True, text=True, check=True)
    assert dict(zip(FOUND, json.loads(done.stdout), strict=True)) == FOUND
