"""Each static check finds its violation in a small tree, at its line, and nothing beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.static import __main__ as command
from tests.static import budget
from tests.static.repository import Repository, repository
from tests.static.scripts import scripts_parse

PROMISE = "| promise | tested by |\n|---|---|\n"
CATALOGUE = "pages/locale/ko/LC_MESSAGES/pages.po"
BUDGET = "tests/static/budget.toml"
CASES: list[tuple[str, dict[str, str], set[str]]] = [
    (
        "imports_are_absolute",
        {"tfm_core/layers/norms.py": "from . import attention\n"},
        {"tfm_core/layers/norms.py:1"},
    ),
    (
        "core_imports_what_lies_below",
        {
            "tfm_core/data/text.py": "import tfm_core.choices.config\nfrom tfm_core import runs\n",
            "tfm_core/runs/store.py": "import tfm_core.data\ndef f():\n    import tfm_core.plots\n",
            "tfm_core/runs/__init__.py": "import streamlit\nfrom pages import i18n\n",
            "tfm_core/attic/old.py": "",
            "tfm_core/sweeps/typed.py": "if TYPE_CHECKING:\n    import tfm_core.export\n",
        },
        {
            "tfm_core/data/text.py:2",
            "tfm_core/runs/store.py:3",
            "tfm_core/runs/__init__.py:1",
            "tfm_core/runs/__init__.py:2",
            "tfm_core/attic/old.py:1",
        },
    ),
    (
        "builders_alone_know_configs",
        {
            "tfm_core/models/vit.py": "import math\nfrom tfm_core.choices.config import vit\n",
            "tfm_core/models/build.py": "import tfm_core.choices.config\n",
        },
        {"tfm_core/models/vit.py:2"},
    ),
    (
        "late_packages_are_loaded_from_their_top",
        {
            "app.py": "def f():\n    from torch.nn import functional\n    import torch\n",
            "pages/i18n.py": "import torch\ndef f():\n    import torch.nn\n",
            "tfm_core/sweeps/trials.py": "try:\n    import optuna.trial\nfinally:\n    pass\n",
        },
        {"app.py:2", "tfm_core/sweeps/trials.py:2"},
    ),
    (
        "core_makes_no_circle",
        {
            "tfm_core/data/a.py": "import tfm_core.data.b\n",
            "tfm_core/data/b.py": "\nimport tfm_core.data.c\n",
            "tfm_core/data/c.py": "def later():\n    pass\nimport tfm_core.data.a\n",
            "tfm_core/data/d.py": "def later():\n    import tfm_core.data.e\n",
            "tfm_core/data/e.py": "import tfm_core.data.d\n",
        },
        {"tfm_core/data/c.py:3"},
    ),
    (
        "pages_import_no_torch",
        {"pages/look_inside/walk/page.py": "import math\ndef draw():\n    from torch import nn\n"},
        {"pages/look_inside/walk/page.py:3"},
    ),
    (
        "one_module_knows_the_internals_of_streamlit",
        {
            "app.py": "from streamlit.web import bootstrap\n",
            "pages/server/streamlit_internals.py": "import streamlit.runtime\nimport pages.app\n",
        },
        {"app.py:1", "pages/server/streamlit_internals.py:2"},
    ),
    (
        "pages_are_separate",
        {
            "pages/learn/words/page.py": "import pages.app.show\nimport pages.learn.words.steps\n"
            "import pages.learn.tensors.page\n",
            "pages/app/show.py": "import pages.components\nimport pages.look_inside.walk\n",
            "pages/components/live.py": "import pages.i18n\nimport pages.app\n",
        },
        {"pages/learn/words/page.py:3", "pages/app/show.py:2", "pages/components/live.py:2"},
    ),
    (
        "components_know_no_session",
        {"pages/components/live.py": "import pages.i18n, pages.app.state\n"},
        {"pages/components/live.py:1"},
    ),
    (
        "one_module_keeps_views_in_the_address",
        {
            "pages/look_inside/walk/page.py": "import streamlit as st\nst.query_params['a'] = 1\n",
            "pages/app/state.py": 'st.query_params\nst.text_input("", bind="query-params")\n',
        },
        {"pages/look_inside/walk/page.py:2", "pages/app/state.py:2"},
    ),
    (
        "shared_modules_alone_know_session_state",
        {
            "pages/look_inside/walk/page.py": "import streamlit as st\nst.session_state.a = 1\n",
            "pages/look_inside/walk/steps.py": "st.session_state.a = 1\n",
        },
        {"pages/look_inside/walk/page.py:2"},
    ),
    (
        "every_import_is_declared",
        {
            "requirements.txt": "numpy>=2\ntorch~=2.0\n",
            "requirements-dev.txt": "-r requirements.txt\npytest~=9.0\n",
            "requirements-bench.txt": "-r requirements-dev.txt\n",
            "tfm_core/a.py": "import sys\nimport numpy as np\ndef f():\n    import PIL.Image\n",
            "pages/a.py": "import transformers\n",
            "tests/test_a.py": "import pytest, numpy, transformers\nimport xdist\n",
            "benchmarks/a.py": "import timm\n",
        },
        {
            "requirements.txt:2",
            "tfm_core/a.py:4",
            "pages/a.py:1",
            "tests/test_a.py:2",
            "benchmarks/a.py:1",
        },
    ),
    (
        "optional_packages_are_declared",
        {
            "requirements-cluster.txt": "ray[default]~=2.0\n",
            "requirements-hub.txt": "huggingface_hub>=1\n",
            "requirements-bench.txt": "timm\n",
        },
        {"requirements-bench.txt:1"},
    ),
    (
        "light_requirements_are_some_of_all",
        {
            "requirements.txt": "numpy>=2\ntorch~=2.0\n",
            "requirements-light.txt": "numpy>=3\npandas\n",
        },
        {"requirements-light.txt:1", "requirements-light.txt:2"},
    ),
    (
        "every_pin_is_allowed",
        {
            "requirements-dev.txt": "numpy>=2\ntorch~=2.1\npandas\njinja2\n",
            "constraints.txt": "jinja2==3.1\nnumpy>=2\ntorch==3.0\n",
        },
        {"constraints.txt:2", "constraints.txt:3", "requirements-dev.txt:3"},
    ),
    (
        "no_sentence_is_translated_at_import",
        {
            "pages/look_inside/walk/steps.py": 'def f(a=_("Step")):\n    return _("Later")\n'
            'A = N_("A")\nB = lambda: _("Later")\n\nclass C:\n    d = _("Now")\n',
            "pages/look_inside/walk/page.py": '_("A script")\n',
            "pages/look_inside/walk/more.py": '_("A script")\n',
            "pages/app/navigation/page_table.py": 'PageFacts(script="look_inside/walk/more.py")\n',
        },
        {"pages/look_inside/walk/steps.py:1", "pages/look_inside/walk/steps.py:7"},
    ),
    (
        "caches_hold_no_translated_sentence",
        {
            "pages/look_inside/walk/steps.py": "@st.cache_data\ndef f():\n    return _('Step')\n"
            "@cache\ndef g(spoken):\n    return _('Step')\n"
            "def h():\n    return _('Step')\n"
        },
        {"pages/look_inside/walk/steps.py:3"},
    ),
    (
        "paragraphs_and_their_uses_match",
        {
            "tfm_core/content/en/train.md": "## rate\nHow.\n\n## unused\nNo.\n",
            "pages/content/en/texts/walk.md": "## step-1\nOne.\n\n## step-2\nTwo.\n",
            "tfm_core/training/a.py": 'Paragraph("train/rate")\nParagraph("train/gone")\n',
            "pages/learn/words.py": 'paragraph(f"walk/step-{n}")\nparagraph("train/rate")\n',
        },
        {"tfm_core/content/en/train.md:4", "tfm_core/training/a.py:2", "pages/learn/words.py:2"},
    ),
    (
        "words_of_records_are_marked",
        {
            "tfm_core/choices/variants/a.py": "class Base:\n    name: str\n"
            "    label: str = N_('None')\nclass Kind(Base):\n    help: str = 'Unmarked'\n"
            "A = Kind('a', 'A')\nB = Kind('b', N_('B'), help=N_('H') if x else 'Other')\n"
            "C = Other(label='No record of ours')\n",
            "tfm_core/choices/config/a.py": "def setting(default, label):\n    pass\n"
            "setting(1, 'Width')\nsetting(1, N_('Depth'))\nField('', title='Text')\n",
        },
        {
            "tfm_core/choices/variants/a.py:5",
            "tfm_core/choices/variants/a.py:6",
            "tfm_core/choices/variants/a.py:7",
            "tfm_core/choices/config/a.py:3",
            "tfm_core/choices/config/a.py:5",
        },
    ),
    (
        "languages_are_whole",
        {
            "pages/look_inside/walk/page.py": '_("Heads")\n',
            "pages/content/en/walk.md": "# Walk\n",
            CATALOGUE: 'msgid ""\nmsgstr "Language: ko\\n"\n',
            CATALOGUE.replace(".po", ".mo"): "",
        },
        {
            "pages/look_inside/walk/page.py:1",
            "pages/content/ko/walk.md:1",
            f"{CATALOGUE.replace('.po', '.mo')}:1",
        },
    ),
    (
        "korean_has_none_of_its_faults",
        {
            "README.ko.md": "1번째\n11번째, {n:번째}\n주피터 노트북, 은닉층, 95%\n내 노트북\n",
            "pages/content/ko/walk.md": "# 모든 층\n95 %\n2%포인트\n하위 레이어\n",
            CATALOGUE: 'msgid ""\nmsgstr "Language: ko\\n"\n\nmsgid "{n} heads"\n'
            'msgstr "헤드 {n}를"\n\nmsgid "Look"\nmsgstr "보십시오"\n\n'
            'msgid "{n} a"\nmsgstr "{n:를}"\n',
        },
        {
            "README.ko.md:1",
            "README.ko.md:4",
            *(f"pages/content/ko/walk.md:{line}" for line in (1, 2, 3, 4)),
            f"{CATALOGUE}:4",
            f"{CATALOGUE}:7",
        },
    ),
    (
        "korean_readme_has_commands_and_links_of_the_english_one",
        {
            "README.md": "```sh\npytest\n```\n[a](docs/a.md)\n",
            "README.ko.md": "\n```sh\npip\n```\n[a](docs/a.md)\n",
        },
        {"README.md:2", "README.ko.md:3"},
    ),
    (
        "scripts_parse",
        {
            "pages/components/whole.js": 'import { two } from "./two.js";\n'
            "export default function (given) {\n  return two + given;\n}\n",
            "pages/components/two.js": "export const two = 2;\n",
            "pages/components/broken.js": "export const one = 1;\nconst = 3;\n",
            "pages/components/film.js": 'import { three } from "./two.js";\n',
            "pages/components/gallery.js": 'export const a = 1;\nconst text = "export ";\n',
        },
        {
            "pages/components/broken.js:2",
            "pages/components/film.js:1",
            "pages/components/gallery.js:1",
        },
    ),
    (
        "components_take_entries",
        {
            "pages/components/whole.js": "export default function () {}\n",
            "pages/components/alone.js": "export default function () {}\n",
            "pages/components/film.js": "",
            "pages/components/whole.py": 'component(\n    "whole")\nbundled("gone")\n',
            "pages/components/film.py": 'bundled("film.js")\n',
        },
        {"pages/components/alone.js:1", "pages/components/whole.py:3"},
    ),
    (
        "scripts_never_write_html",
        {"pages/components/a.js": "const a = 1;\na.innerHTML = text;\n"},
        {"pages/components/a.js:2"},
    ),
    (
        "insides_are_used_in_one_file",
        {
            "pages/components/a.js": "figure._fullLayout;\n\ndocument.scripts;\n",
            "pages/components/insides.js": "figure._fullLayout;\n",
            "pages/app/a.css": "\n.stButton {}\n",
        },
        {"pages/components/a.js:1", "pages/components/a.js:3", "pages/app/a.css:2"},
    ),
    (
        "files_that_guides_name_are_there",
        {
            "README.md": "`tfm_core/runs/`, `store.py`\nand `gone.py`, `i18n.py`\n",
            "tfm_core/runs/store.py": "",
            "i18n.py": "",
        },
        {"README.md:2"},
    ),
    (
        "variables_of_deployment_are_settings",
        {
            "docs/settings.md": "| `TFM_RUNS_DIR` | a folder |\n",
            "compose.yaml": "TFM_RUNS_DIR: a\nTFM_GONE: b\n",
        },
        {"compose.yaml:2"},
    ),
    (
        "image_gets_what_it_copies",
        {
            "Dockerfile": "COPY .streamlit .streamlit\nCOPY app.py pages gone.py ./\n"
            "COPY tfm_core tfm_core\n",
            ".dockerignore": "*\n!app.py\n!pages\n!.streamlit\n!gone.py\n!docs\n",
            "app.py": "",
            "pages/i18n.py": "",
            "tfm_core/a.py": "",
            ".streamlit/config.toml": "",
        },
        {"Dockerfile:2", "Dockerfile:3", ".dockerignore:6", "Dockerfile:1"},
    ),
    (
        "promises_name_tests_that_are_there",
        {
            "docs/security.md": f"{PROMISE}| one | `tests/test_a.py::test_a` |\n| two | nothing |\n"
            "| three | `tests/test_a.py::test_gone` |\n| four | `tests/gone.py::test_a` |\n",
            "tests/test_a.py": "def test_a():\n    pass\n",
        },
        {f"docs/security.md:{line}" for line in (4, 5, 6)},
    ),
    (
        "settings_are_read_in_one_place",
        {
            "tfm_core/settings/values.py": "class Settings:\n    runs_dir: Path = HERE\n",
            "tfm_core/runs/store.py": "import os\nos.environ['TFM_RUNS_DIR']\n"
            "os.environ['TFM_OTHER']\n",
        },
        {"tfm_core/runs/store.py:2"},
    ),
    (
        "runs_are_changed_where_someone_asks_who_may",
        {
            "pages/look_inside/walk/page.py": "run_actions.delete(run)\nrun.delete()\n"
            "queue().submit(run)\nsweep_store().list()\nstore().list()\n",
            "pages/app/runs/run_actions.py": "store.delete(run)\n",
            "pages/app/runs/visitors.py": "store().list()\n",
        },
        {f"pages/look_inside/walk/page.py:{line}" for line in (2, 3, 5)},
    ),
    (
        "marks_stand_on_tests",
        {
            "tests/test_a.py": "@pytest.mark.wide\ndef test_a():\n    pass\n"
            "@pytest.mark.core(3)\ndef helper():\n    pass\n"
        },
        {"tests/test_a.py:5"},
    ),
    (
        "nothing_grows",
        {
            "tfm_core/runs/store.py": "def read():\n    return 1\n",
            "tests/runs/test_store.py": "",
            BUDGET: '["tfm_core/runs"]\nlines = 1\nfiles = 1\nnames = 1\n'
            '["sum outside tests"]\nlines = 2\nfiles = 1\nnames = 1\n'
            '["tests/runs"]\nfiles = 1\n["sum of tests"]\nfiles = 1\n'
            '[shapes]\n"syntax nodes a line" = 9\n',
        },
        {f"{BUDGET}:1"},
    ),
]


def made(root: Path, files: dict[str, str]) -> Repository:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Repository(root)


def test_every_check_is_tried() -> None:
    assert [name for name, *_ in CASES] == [check.__name__ for check in command.CHECKS]


@pytest.mark.parametrize(("name", "files", "places"), CASES, ids=[name for name, *_ in CASES])
def test_a_check_finds_its_violations(
    name: str, files: dict[str, str], places: set[str], tmp_path: Path
) -> None:
    if name == scripts_parse.__name__ and shutil.which("node") is None:
        pytest.skip("there is no node on the PATH")
    (check,) = (check for check in command.CHECKS if check.__name__ == name)
    found = [f"{one.path}:{one.line}" for one in check(made(tmp_path, files))]
    assert sorted(found) == sorted(places)


SHAPES = {
    "tfm_core/runs/store.py": "import dataclasses\n@dataclasses.dataclass\nclass Run:\n    n: int\n"
    "def _short():\n    return Run(1)\ndef used():\n    return _short()\ndef twice():\n"
    "    return used() + used()\nA = (1,)  # fmt: skip\n"
    "if TYPE_CHECKING:\n    import tfm_core.plots.lines\n",
    "tfm_core/plots/lines.py": "class Run:\n    pass\n"
    "def late():\n    import tfm_core.runs.store\n",
}


def test_shapes_that_are_counted(tmp_path: Path) -> None:
    counted = budget.shapes(made(tmp_path, SHAPES))
    assert counted.pop("syntax nodes a line") == pytest.approx(4, abs=1)
    assert counted == {
        "dataclasses built in one place": 1,
        "short functions with one caller in their file": 1,
        "class names twice": 1,
        "imports that point up": 1,
        "circles of imports": 1,
        "files in circles": 2,
        "lines without format": 1,
    }


def test_a_budget_is_written_once_and_lowered_but_never_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(budget, "ROOT", tmp_path)
    file = tmp_path / "tfm_core/runs/store.py"
    made(tmp_path, {BUDGET: "", "tfm_core/runs/store.py": "A = 1\n" * 100})
    assert budget.main() == 0
    assert budget.allowed(Repository(tmp_path))["tfm_core/runs"]["lines"] == 100
    file.write_text("A = 1\n" * 97)
    (stale,) = budget.nothing_grows(Repository(tmp_path))
    assert "sum outside tests: 97 lines" in stale.rule
    repository.cache_clear()
    assert budget.main() == 0
    assert list(budget.nothing_grows(Repository(tmp_path))) == []
    file.write_text("A = 1\n" * 98)
    repository.cache_clear()
    assert budget.main() == 1
    assert "sum outside tests: 98 lines, not more than 97" in capsys.readouterr().out
    (over, above) = budget.nothing_grows(Repository(tmp_path))
    assert {over.rule.split(":")[0], above.rule.split(":")[0]} == {
        "sum outside tests",
        "tfm_core/runs",
    }


def test_violations_are_printed_and_end_the_command_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path, {"pages/look_inside/walk/page.py": "import torch\n"})
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert command.main() == 1
    printed = capsys.readouterr().out.splitlines()
    assert "pages/look_inside/walk/page.py:1: pages must not import torch" in printed
    monkeypatch.setattr(command, "CHECKS", ())
    assert command.main() == 0
