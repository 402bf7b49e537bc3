"""A lesson is read from two files, and each mistake in them is a sentence with file and field."""

import re
from pathlib import Path

import pytest

from tests.lessons.made import SETTINGS, WORDS, written
from tfm_core.choices.config import ConfigError
from tfm_core.choices.presets import PRESETS
from tfm_core.cli import WRONG_INPUT, main
from tfm_core.lessons import catalogue
from tfm_core.lessons.checks import CHECKS
from tfm_core.lessons.lesson import read
from tfm_core.sentences import StudentError

MAX_BYTES = 64 * 1024

pytestmark = pytest.mark.quick


def problems(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as refused:
        read(path)
    return [(problem.field, problem.sentence) for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("a." * 32_000 + "a = 1", "width.toml: a line has more than 100 dots."),
        ("minutes = " + "9" * 5_000, "width.toml: a number is too large."),
        ("minutes = 0x" + "f" * 5_000, "width.toml: a number is too large."),
        ("minutes = " + "[" * 50 + "]" * 50, "width.toml: it is nested too deeply."),
        ("minutes = " + "[" * 5_000, "width.toml: it is nested too deeply."),
    ],
)
def test_a_file_that_would_take_gigabytes_is_refused_in_one_sentence(
    settings: str, sentence: str, tmp_path: Path
) -> None:
    assert problems(written(tmp_path, settings)) == [("width.toml", sentence)]


def test_a_lesson_is_what_its_files_say(tmp_path: Path) -> None:
    lesson = read(written(tmp_path))
    assert (lesson.id, lesson.minutes, lesson.pages) == ("width", 7, ("train",))
    assert lesson.experiment is not None
    assert lesson.experiment.training.steps == 40
    assert lesson.experiment.model == PRESETS["copy"].experiment.model
    words = lesson.words("ko")  # which it lacks
    assert (words.title, words.goal, words.text) == ("Width", "How wide must it be?", "Some text.")
    why = words.tasks["why"]
    assert (why.title, why.text, why.solved) == ("A question", "Which one?", "Well done.")
    assert [(one.text, one.is_right, one.why) for one in why.options] == [
        ("this", True, "It is."),
        ("that", False, "It is not."),
    ]


def test_what_is_not_open_is_locked_and_a_change_is_refused_by_name(tmp_path: Path) -> None:
    lesson = read(written(tmp_path))
    begun = lesson.experiment
    assert begun is not None
    assert not lesson.locks("model.d_model")
    assert lesson.locks("training.learning_rate")
    lesson.check(begun)
    lesson.check(begun.replace(model=begun.model.model_dump() | {"d_model": 32}))
    for section, name, value in (
        ("model", "n_heads", 2),
        ("training", "steps", 41),
        ("task", "n_train", 501),
    ):
        part = getattr(begun, section)
        changed = begun.replace(**{section: part.model_dump() | {name: value}})
        with pytest.raises(StudentError, match="“Width” locks") as refused:
            lesson.check(changed)
        assert str(type(part).model_fields[name].title) in str(refused.value)
    with pytest.raises(StudentError, match="locks"):
        lesson.check(begun.replace(seed=5))
    with pytest.raises(StudentError, match="locks"):
        lesson.check(PRESETS["reverse"].experiment)


def test_a_list_of_locked_settings_opens_the_others(tmp_path: Path) -> None:
    settings = SETTINGS.replace('open = ["model.d_model"]', 'locked = ["training.steps", "seed"]')
    lesson = read(written(tmp_path, settings))
    assert lesson.locks("seed")
    assert lesson.locks("model.family")
    assert not lesson.locks("training.learning_rate")
    begun = lesson.experiment
    assert begun is not None
    lesson.check(begun.replace(training=begun.training.model_dump() | {"learning_rate": 0.5}))
    with pytest.raises(StudentError, match="locks"):
        lesson.check(begun.replace(seed=3))


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('id = "width"', 'id = "Width!"', "width.toml, id"),
        ('id = "width"', 'id = "height"', "width.toml, id"),
        ("minutes = 7", "minutes = 0", "width.toml, minutes"),
        ("minutes = 7", 'minutes = "7"', "width.toml, minutes"),
        ("minutes = 7", "", "width.toml, minutes"),
        ("minutes = 7", "minutes = 7\nhours = 2", "width.toml, hours"),
        ('pages = ["train"]', 'pages = ["cellar"]', "width.toml, pages"),
        ('preset = "copy"', 'preset = "coffee"', "width.toml, experiment.preset"),
        ('preset = "copy"', "", "width.toml, experiment"),
        ('preset = "copy"', 'family = "vit"\ntask = "copy"', "width.toml, experiment.task"),
        ('"training.steps" = 40', '"training.steps" = 0', "width.toml, experiment.set"),
        ('"training.steps" = 40', '"training.stops" = 4', "width.toml, experiment.set"),
        ('open = ["model.d_model"]', "", "width.toml, experiment"),
        ('open = ["model.d_model"]', 'open = ["model.width"]', "width.toml, experiment.open"),
        ('open = ["model.d_model"]', 'open = ["task.name"]', "width.toml, experiment.open"),
        (
            'open = ["model.d_model"]',
            'open = ["training.optimizer"]',
            "width.toml, experiment.open",
        ),
        ('check = "choice"', 'check = "choices"', "width.toml, tasks[1]"),
        ('check = "choice"', "", "width.toml, tasks[1]"),
        ("within = 0.1", "within = 2", "width.toml, tasks[2].within"),
        ('id = "half"', 'id = "why"', "width.toml, tasks[2]"),
        ("at_least = 0.9", "at_least = 1.5", "width.toml, tasks[3].at_least"),
        ("at_least = 0.9", "at_most = 0.5\nat_least = 0.9", "width.toml, tasks[3] smallest"),
        ("values = [8, 16, 32]", "values = [8, 32, 16]", "width.toml, tasks[3] smallest"),
        ("values = [8, 16, 32]", "values = [7, 16]", "width.toml, tasks[3] smallest"),
        ('setting = "model.d_model"', 'setting = "model.x"', "width.toml, tasks[3] smallest"),
        ('page = "train"', 'page = "cellar"', "width.toml, tasks[3].page"),
        ("[experiment]", "[experiment", "width.toml"),
        ("minutes = 7", "minutes = 2020-01-01", "width.toml, minutes"),
    ],
)
def test_each_mistake_in_the_settings_names_file_and_field(
    tmp_path: Path, old: str, new: str, field: str
) -> None:
    assert SETTINGS.count(old) >= 1
    found = problems(written(tmp_path, SETTINGS.replace(old, new, 1)))
    assert field in [place for place, _sentence in found], found
    for place, sentence in found:
        assert sentence.startswith(place)
        assert sentence[-1] in ".?"
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("# Width", "Width", "width.md"),
        ("# Width", "# " + 61 * "w", "width.md"),
        ("How wide must it be?\n\nSome text.", "", "width.md"),
        ("## half: A number", "## whole", "width.md"),
        ("## smallest", "## why", "width.md"),
        ("Find it.", "", "width.md"),
        ("- [x] this", "- [ ] this", "width.toml, tasks[1] why"),
        ("- [ ] that", "- [ ] this", "width.toml, tasks[1] why"),
        ("- [x] 64", "- [x] sixty", "width.toml, tasks[2] half"),
        ("- [x] 64", "- [ ] 64", "width.toml, tasks[2] half"),
        ("Find it.", "Find it.\n- [x] 8", "width.toml, tasks[3] smallest"),
    ],
)
def test_each_mistake_in_the_words_names_its_file(
    tmp_path: Path, old: str, new: str, field: str
) -> None:
    assert WORDS.count(old) == 1
    found = problems(written(tmp_path, words=WORDS.replace(old, new)))
    assert field in [place for place, _sentence in found], found


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ('check = "head_aligns"\nrun = "recorded-corean"', "comes with the app"),
        ('check = "head_aligns"\nrun = "../../etc"', "isn't a run id"),
        ('check = "bug_named"\nruns = ["recorded-korean"]', "at least two different ones"),
        (
            'check = "bug_named"\nruns = ["recorded-korean", "recorded-corean"]',
            "comes with the app",
        ),
        ('check = "fails_without"\nmistake = "no-coffee"', "no mistake no-coffee"),
        ('check = "predicted_count"\npart = "cellar"', "no module begins with"),
        ('check = "predicted_count"\nchanges = { "model.d_model" = 7 }', "d_model"),
        ('check = "reached"\nat_least = 0.9\nmax_parameters = 0', "max_parameters"),
        ('check = "reached"\nat_least = 0.9\nmin = { "model.norm" = 1 }', "isn't a number"),
        ('check = "reached"\nat_least = 0.9\nwhere = { "model.x" = 1 }', "no setting model.x"),
    ],
)
def test_each_check_says_what_is_wrong_with_its_fields(
    tmp_path: Path, check: str, said: str
) -> None:
    task = f'[[tasks]]\nid = "more"\n{check}\n'
    words = f"{WORDS}\n## more\nDo it.\n"
    found = problems(written(tmp_path, f"{SETTINGS}\n{task}", words))
    assert any(said in sentence and "tasks[4]" in place for place, sentence in found), found


def test_files_that_are_none_get_a_sentence(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.toml")[0][0] == "none.toml"
    path = written(tmp_path)
    (tmp_path / "width.md").unlink()
    assert "width.md" in problems(path)[0][1]
    path = written(tmp_path, words="# \xff" + MAX_BYTES * "w")
    assert "bytes" in problems(path)[0][1]
    (tmp_path / "width.md").write_bytes(b"# \xff\xfe")
    assert "UTF-8" in problems(path)[0][1]


def test_the_command_says_each_problem_and_its_exit_code_says_whether_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    assert main(["lesson", "check", str(path)]) == 0
    assert "3 tasks, 7 minutes" in capsys.readouterr().out
    bad = SETTINGS.replace("within = 0.1", "within = 2").replace("minutes = 7", "minutes = 0")
    written(tmp_path, bad)
    assert main(["lesson", "check", str(path)]) == WRONG_INPUT
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in said] == [
        "width.toml, minutes",
    ] or len(said) == 2


def test_the_lessons_of_the_app_are_good_in_order_and_use_every_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TFM_LESSONS_DIR", raising=False)
    known = catalogue.catalogue()
    assert known.problems == ()
    lessons = list(known.lessons.values())
    assert len(lessons) == 16
    assert [one.order for one in lessons] == sorted({one.order for one in lessons})
    assert {task.check for one in lessons for task in one.tasks} == set(CHECKS)
    assert all(5 <= one.minutes <= 15 for one in lessons)


def test_a_teachers_folder_adds_and_replaces_lessons_and_a_bad_file_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    (tmp_path / "broken.toml").write_text("id = ", encoding="utf-8")
    monkeypatch.setenv("TFM_LESSONS_DIR", str(tmp_path))
    known = catalogue.catalogue()
    assert len(known.lessons) == 17
    assert known.lessons["width"].is_own
    assert any("broken.toml" in sentence for sentence in known.problems)
    written(tmp_path, SETTINGS.replace("minutes = 7", "minutes = 13"))
    assert catalogue.lesson("width").minutes == 13
    with pytest.raises(StudentError, match="no lesson “height”"):
        catalogue.lesson("height")


def test_lessons_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch) -> None:
    for number in range(103):
        (tmp_path / f"lesson-{number:03}.toml").write_text("id = ", encoding="utf-8")
    monkeypatch.setenv("TFM_LESSONS_DIR", str(tmp_path))
    assert "The limit is 100 lessons; 3 more were skipped." in catalogue.catalogue().problems


def test_the_example_of_the_documentation_is_a_lesson_and_its_table_has_every_check(
    tmp_path: Path,
) -> None:
    document = (Path(__file__).resolve().parents[2] / "docs/lessons.md").read_text(encoding="utf-8")
    settings, words = (
        re.search(rf"^```{kind}\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
        for kind in ("toml", "markdown")
    )
    assert settings is not None
    assert words is not None
    lesson = read(written(tmp_path, settings[1], words[1], "smallest-model"))
    assert lesson.words().tasks["smallest"].solved
    assert set(re.findall(r"^\| `(\w+)` \|", document, re.MULTILINE)) == {"check", *CHECKS}
