"""Results as statements of the Experience API (xAPI 1.0.3), which learning record stores take.

One statement for each answered task and one for the lesson. Their ids depend on what they say, so a
store that gets a result twice keeps it once. https://github.com/adlnet/xAPI-Spec
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from tfm_core.lessons.results import Result
from tfm_core.sentences import StudentError

_VERBS = "http://adlnet.gov/expapi/verbs/"
_ACTIVITIES = "http://adlnet.gov/expapi/activities/"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "watch-a-transformer-learn/lessons")


def statements(results: Iterable[Result], address: str) -> list[dict[str, Any]]:
    """Return the statements of results. address: of the app. Raises StudentError."""
    base = checked_address(address)
    return [one for result in results for one in _statements(result, base)]


def checked_address(address: str) -> str:
    """Return the address of an app without what follows its path. Raises StudentError."""
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise StudentError("The address of the app must begin with http:// or https://.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def lesson_address(base: str, lesson: str, **query: str) -> str:
    """Return the address of a lesson."""
    return f"{base}/lessons?{urlencode({'lesson': lesson, **query})}"


def _statements(result: Result, base: str) -> list[dict[str, Any]]:
    values = result.values
    lesson = lesson_address(base, str(values["lesson"]))
    actor = {
        "objectType": "Agent",
        "account": {"homePage": f"{base}/", "name": str(values.get("participant"))},
    }
    if values.get("name"):
        actor["name"] = str(values["name"])
    whole = {
        "objectType": "Activity",
        "id": lesson,
        "definition": {
            "type": f"{_ACTIVITIES}lesson",
            "name": {"en": str(values.get("title") or values["lesson"])},
        },
    }
    made = [
        _of_task(name, answer, lesson, actor, base) for name, answer in values["answers"].items()
    ]
    n, n_solved = max(1, result.n_tasks), result.n_solved
    is_done = n_solved == result.n_tasks
    score = {"scaled": round(n_solved / n, 4), "raw": n_solved, "min": 0, "max": n}
    outcome: dict[str, Any] = {"completion": is_done, "score": score}
    if is_done:
        outcome["success"] = True
    verb = "passed" if is_done else "attempted"
    made.append(_statement(actor, verb, whole, outcome, str(values.get("at")), {}))
    return made


def _of_task(
    name: str, answer: Mapping[str, Any], lesson: str, actor: Mapping[str, Any], base: str
) -> dict[str, Any]:
    is_number = _is_number(str(answer.get("answer", "")))
    activity = {
        "objectType": "Activity",
        "id": f"{lesson}#{name}",
        "definition": {
            "type": f"{_ACTIVITIES}cmi.interaction",
            "name": {"en": name},
            "interactionType": "numeric" if is_number else "other",
        },
    }
    extensions: dict[str, Any] = {f"{base}/xapi/tries": answer.get("tries")}
    for key in ("run", "configuration", "figures"):
        if answer.get(key):
            extensions[f"{base}/xapi/{key}"] = answer[key]
    outcome = {
        "success": bool(answer.get("right")),
        "response": str(answer.get("answer", "")),
        "extensions": extensions,
    }
    context = {"contextActivities": {"parent": [{"objectType": "Activity", "id": lesson}]}}
    return _statement(actor, "answered", activity, outcome, str(answer.get("at")), context)


def _statement(
    actor: Mapping[str, Any],
    verb: str,
    activity: Mapping[str, Any],
    outcome: Mapping[str, Any],
    at: str,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    said = f"{sorted(actor.items())} {verb} {activity['id']} {sorted(outcome.items())} {at}"
    return {
        "id": str(uuid.uuid5(_NAMESPACE, said)),
        "actor": dict(actor),
        "verb": {"id": f"{_VERBS}{verb}", "display": {"en": verb}},
        "object": dict(activity),
        "result": dict(outcome),
        **({"context": dict(context)} if context else {}),
        "timestamp": at,
    }


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
