"""The terms of the search: each leads to a page, as it is where the term is taught."""

import json
import re
import shutil
import subprocess

import pytest

from pages import i18n
from pages.app.navigation import terms
from pages.app.navigation.frame import _entries
from pages.app.navigation.page_table import PAGES
from pages.app.navigation.terms import BY_KEY, BY_SETTING, TERMS
from pages.components.files import FOLDER
from tests.pages.linked_views import PARAMETERS
from tfm_core.anatomy.names import NOTEBOOK_NAMES
from tfm_core.choices.presets import PRESETS


def test_terms_are_named_by_every_form_with_one_line_and_a_page():
    names = [term.name for term in TERMS] + [page.title for page in PAGES.values()]
    assert len({name.casefold() for name in names}) == len(names)
    also = {word for term in TERMS for word in term.also.split()}
    named = {theirs for names in NOTEBOOK_NAMES.values() for theirs in names}
    assert named <= also
    for entry in _entries("en", ""):
        assert not re.search(r"\*\*|`|\]\(", entry.about), entry.about
    for term in TERMS:
        assert len(term.meaning) <= 120
        assert term.meaning.endswith(".")
        facts = PAGES[term.page]
        if not term.view:
            continue
        if facts.name == "attention":  # which deeper parts there are is said by the run
            assert set(term.view) == {"deeper"}
            continue
        for name, text in dict(term.view).items():
            parameter = PARAMETERS[facts.name][name]
            assert not parameter.follow(text, parameter.first)[1]
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


def test_a_term_is_marked_at_its_first_use_the_longest_first():
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
    terms.begin()
    assert keys(terms.marked("The causal mask of gradient checkpointing.")) == [
        "causal-mask",
        "gradient-checkpointing",
    ]
    forms = [form.casefold() for term in TERMS for form in term.forms]
    assert len(set(forms)) == len(forms)
    assert len(BY_KEY) == len(TERMS)
    with i18n.speaking("ko"):
        entries = {entry.name: entry for entry in _entries("ko", "")}
    assert entries["인과 마스크"].also.startswith("Causal mask ")
    assert entries["마스크"].also


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
def test_code_formulas_links_headings_and_other_words_are_left_alone(text):
    terms.begin()
    assert terms.marked(text) == text


def test_elsewhere_a_term_is_marked_by_its_name_there_and_stays_bold(monkeypatch):
    terms.begin()
    monkeypatch.setattr(terms, "language", lambda: "yy")
    assert keys(terms.marked("softmax, the Softmax를")) == ["softmax"]
    terms.begin()
    monkeypatch.setattr(terms, "language", lambda: "yy")
    link = f"({terms.ADDRESS}logit)"
    assert (
        terms.marked("**Logit**은, **log softmax**는") == f"[**Logit**]{link}은, **log softmax**는"
    )
    assert keys(terms.marked("**softmax** 뒤, softmax")) == ["softmax"]


def test_the_glossary_shows_every_term_and_where_it_is(open_page):
    app = open_page("learn/glossary.py")
    links = [link.proto for link in app.get("page_link")]
    for term in TERMS:
        (link,) = [one for one in links if one.label.startswith(f"**{term.name}** ")]
        assert link.page == PAGES[term.page].url_path
        assert term.meaning in link.label


NODE = shutil.which("node")
FOUND = {  # what is typed -> the first thing that is found
    "fc1": "Feed-forward network",
    "addnorm": "Residual connection",
    "make_src_mask": "Padding mask",
    "look-ahead mask": "Causal mask",
    "W_Q": "Query, key, value",
    "d_k": "Scaled dot product",
    "Encoder(3, 16, 4, 2)": "Models of the study notebooks",
    "노트북": "Your notebook",
    "혼동 행렬": "Confusion matrix",
    "미래 토큰": "Causal mask",
    "My_Position": "Positional encoding",
    "자동 미분": "Backpropagation",
    "MyMSA": "Attention head",
    "unsqueeze": "Tensor",
    "OOV": "Unknown word",
    "king - man + woman": "Word2Vec and GloVe",
    "원-핫": "One-hot vector",
    "bank": "Contextual embedding",
    "GPU": "Device",
}


@pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")
def test_names_of_code_and_korean_words_find_their_term(tmp_path):
    assert NODE is not None
    entries = [{"name": page.title, "also": "", "about": ""} for page in PAGES.values()]
    entries += [{"name": t.name, "also": t.finding, "about": t.meaning} for t in TERMS]
    script = tmp_path / "find.mjs"
    script.write_text(
        f"import {{ matching }} from {json.dumps(str(FOLDER / 'search.js'))};\n"
        f"const entries = {json.dumps(entries)};\n"
        f"const first = (typed) => matching(entries, typed)[0]?.entry.name;\n"
        f"console.log(JSON.stringify({json.dumps(list(FOUND))}.map(first)));\n",
        encoding="utf-8",
    )
    done = subprocess.run([NODE, script], capture_output=True, text=True, check=True)
    assert dict(zip(FOUND, json.loads(done.stdout), strict=True)) == FOUND
