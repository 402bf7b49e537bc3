"""Results as xAPI statements: each rule of the specification (1.0.3, Data) that they touch."""

from __future__ import annotations

import json
import math
import re
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.lessons.made import written
from tfm_core.cli import main
from tfm_core.lessons import attempts, results
from tfm_core.lessons.checks.task import Verdict
from tfm_core.lessons.lesson import read
from tfm_core.lessons.results import Result
from tfm_core.lessons.xapi import statements
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.quick

ANN = "a" * 64
APP = "https://app.example.org:8443/here/"
STATEMENT = {"id", "actor", "verb", "object", "result", "context", "timestamp"}
"""Of the properties that 4.2 allows, those that are used; it allows no others."""
INTERACTIONS = {
    "true-false", "choice", "fill-in", "long-fill-in", "matching", "performance", "sequencing",
    "likert", "numeric", "other",
}  # fmt: skip


def is_iri(text: object) -> bool:
    """Absolute, with a scheme, and without what may not stand in one (RFC 3987)."""
    return isinstance(text, str) and bool(
        urlsplit(text).scheme and urlsplit(text).netloc and not re.search(r"[\s<>\"{}|\\^`]", text)
    )


def is_language_map(values: object) -> bool:
    return isinstance(values, dict) and all(
        re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*", tag) and isinstance(text, str)
        for tag, text in values.items()
    )


def check(statement: dict[str, Any]) -> None:
    """Assert what the specification demands of a statement, section by section."""
    assert set(statement) <= STATEMENT
    assert {"actor", "verb", "object"} <= set(statement)  # 2.2
    assert str(uuid.UUID(statement["id"])) == statement["id"]  # 2.4.1
    assert None not in json.loads(json.dumps(statement)).values()
    actor = statement["actor"]  # 2.4.2.1, 2.4.2.4
    assert set(actor) <= {"objectType", "name", "account"}
    assert actor["objectType"] == "Agent"
    assert set(actor["account"]) == {"homePage", "name"}
    assert is_iri(actor["account"]["homePage"])
    assert isinstance(actor["account"]["name"], str)
    verb = statement["verb"]  # 2.4.3
    assert is_iri(verb["id"])
    assert is_language_map(verb["display"])
    activity = statement["object"]  # 2.4.4.1
    assert activity["objectType"] == "Activity"
    assert is_iri(activity["id"])
    definition = activity["definition"]
    assert is_iri(definition["type"])
    assert is_language_map(definition["name"])
    if definition["type"].endswith("cmi.interaction"):
        assert definition["interactionType"] in INTERACTIONS
    result = statement["result"]  # 2.4.5
    assert set(result) <= {"score", "success", "completion", "response", "extensions"}
    for name, kind in (("success", bool), ("completion", bool), ("response", str)):
        assert isinstance(result.get(name, kind()), kind)
    assert all(is_iri(key) for key in result.get("extensions", {}))
    if score := result.get("score"):  # 2.4.5.1
        assert -1 <= score["scaled"] <= 1
        assert score["min"] <= score["raw"] <= score["max"]
        assert score["min"] < score["max"]
    for parent in statement.get("context", {}).get("contextActivities", {}).get("parent", []):
        assert is_iri(parent["id"])  # 2.4.6.2
    assert datetime.fromisoformat(statement["timestamp"]).tzinfo is not None  # 2.4.7, 4.5


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The result of one who has begun, and then of the same one who has solved all."""
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    lesson, made = read(written(tmp_path)), []
    for is_right in (False, True):
        for task, answer in (("why", "this"), ("half", "64"), ("smallest", "16"))[
            : 1 + 2 * is_right
        ]:
            verdict = Verdict(is_right, "", "run-12345", {"accuracy": 0.97})
            mine = attempts.record("width", ANN, task, answer=answer, verdict=verdict)
        made.append(
            results.line(lesson, mine, store=RunStore(recorded=None), key=results.server_key())
        )
        attempts.give_name("width", ANN, "Ann 김")
    return made


def of(line: str) -> list[dict[str, Any]]:
    return statements([Result(results.read(line))], APP)


def test_every_statement_keeps_to_the_specification(lines: list[str]) -> None:
    made = [one for line in lines for one in of(line)]
    assert len(made) == 2 + 4
    for statement in made:
        check(statement)
    assert len({one["id"] for one in made}) == len(made)


def test_the_same_result_gives_the_same_statements(lines: list[str]) -> None:
    assert of(lines[1]) == of(lines[1])


def test_what_was_solved_stands_in_them(lines: list[str]) -> None:
    begun, whole = of(lines[0]), of(lines[1])
    assert [one["verb"]["display"]["en"] for one in begun] == ["answered", "attempted"]
    assert begun[-1]["result"]["completion"] is False
    assert begun[-1]["result"]["score"]["raw"] == 0
    assert whole[-1]["verb"]["display"]["en"] == "passed"
    assert whole[-1]["result"]["success"] is True
    assert math.isclose(whole[-1]["result"]["score"]["scaled"], 1.0)
    assert whole[-1]["actor"]["name"] == "Ann 김"
    assert whole[1]["object"]["definition"]["interactionType"] == "numeric"
    assert whole[0]["result"]["response"] == "this"


def test_the_command_prints_only_good_results(
    lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.txt"
    path.write_text(f"{lines[1][:-1]}x\n{lines[1]}\n{lines[1][:-4]}0000", encoding="utf-8")
    assert main(["lesson", "xapi", str(path), "--address", APP]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == of(lines[1])
    assert "1 results were left out" in printed.err


@pytest.mark.parametrize("address", ["app.example.org", "ftp://a.org", "http://", "https://a:x"])
def test_an_address_that_is_none_gets_a_sentence(address: str) -> None:
    with pytest.raises(StudentError, match="must begin with http"):
        statements([], address)
