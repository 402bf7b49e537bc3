"""The terms of the search: each leads to a page, as it is where the term is taught."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.linked_views import VIEWS
from pages.components.files import FOLDER
from pages.ui.address import view_link
from pages.ui.navigation.page_table import PAGES
from pages.ui.navigation.terms import BY_SETTING, TERMS
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
