"""What the address of each page may hold, by the name of the page and then of the parameter."""

import dataclasses
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pages.app import article
from pages.app.address import view
from pages.app.address.parameters import Parameter
from pages.app.settings import model_choice
from pages.compare import compare
from pages.compare.sweeps import running as sweeps
from pages.findings import page as findings
from pages.learn import before, by_hand, model, training_step, use
from pages.learn.challenges import find
from pages.learn.challenges import page as challenges
from pages.learn.numbers import page as numbers
from pages.learn.numbers import tensors
from pages.learn.practice import page as practice
from pages.learn.practice import speed
from pages.look_inside import build, costs, masks, mistakes, parameters, positions, walk, walk_step
from pages.look_inside.attention import deeper, maps, own
from pages.look_inside.knockouts import closer
from pages.look_inside.knockouts import page as knockouts
from pages.teach import classroom
from pages.train.own_data import report as own_report
from pages.train.own_data import upload as own_upload
from pages.try_it import page as try_it
from pages.try_it import pictures, writing
from tfm_core.inspect.tensors.operations import OPERATIONS
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

_MODEL = (model_choice.SHOW, model_choice.NOTEBOOK_TEXT)
_SIZED_MODEL = (
    *_MODEL,
    model_choice.SRC_VOCABULARY,
    model_choice.TGT_VOCABULARY,
    model_choice.SRC_LEN,
    model_choice.TGT_LEN,
    view.placed(model_choice.NAMES, "names", "").parameter,
)


OFF = closer.what_is_off(Run(RECORDED / "recorded-korean").experiment)


def _within(value: object) -> Iterator[Parameter[Any]]:
    """Yield the parameters that a module, a table or a list holds."""
    if isinstance(value, Parameter):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _within(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _within(one)


def _of(*holders: object) -> dict[str, Parameter[Any]]:
    found = {}
    for holder in holders:
        for one in _within(vars(holder) if hasattr(holder, "__file__") else holder):
            found[one.query] = one
    return found


def _of_views(page: ModuleType) -> dict[str, Parameter[Any]]:
    """Return what the views of a page's file ask for."""
    kinds = (one for one in vars(page).values() if isinstance(one, type))
    views = (one for one in kinds if dataclasses.is_dataclass(one))
    mine = (one for one in views if view.FIELD in dataclasses.fields(one)[0].metadata)
    found = [field for one in mine for field in view.fields(one, page.SCOPE).values()]
    return {field.parameter.query: field.parameter for field in found}


def fields_of_operation(name: str) -> dict[str, Parameter[Any]]:
    """Return what the page of tensors asks for with an operation."""
    chosen = OPERATIONS[name]
    fields = {
        tensors.key_of(chosen, one): field for one, field in tensors.fields_of(chosen).items()
    }
    return {key: view.placed(field, key, "").parameter for key, field in fields.items()}


ARTICLES: dict[str, ModuleType] = {
    "numbers": numbers,
    "before": before,
    "practice": practice,
    "by-hand": by_hand,
    "model": model,
    "training-step": training_step,
    "use": use,
}
PARAMETERS: dict[str, dict[str, Parameter[Any]]] = {
    "class": _of_views(classroom),
    "attention": _of_views(maps) | _of_views(own) | _of_views(deeper),
    "try": _of_views(writing) | _of_views(pictures) | _of(try_it.VIEW),
    "mistakes": _of_views(mistakes),
    "knockouts": _of_views(knockouts) | _of_views(closer) | _of(OFF),
    "challenges": _of_views(challenges)
    | _of_views(find)
    | _of((view.placed(find.pair_field("1"), "pair", "").parameter,)),
    "findings": _of(findings.CHOSEN),
    "compare": _of(compare) | _of_views(compare),
    "sweeps": _of_views(sweeps),
    "own-data": _of_views(own_upload) | _of_views(own_report),
    "build": _of_views(build) | _of(_SIZED_MODEL),
    "parameters": (
        _of_views(parameters) | _of_views(costs) | _of((*_SIZED_MODEL, model_choice.VERSUS))
    ),
    "masks": _of_views(masks),
    "positions": _of_views(positions),
    "walk": _of_views(walk) | _of((walk_step.PART, *_SIZED_MODEL)),
    "numbers": {
        **_of_views(numbers),
        **_of_views(tensors),
        **_of(*map(fields_of_operation, OPERATIONS)),
    },
    "model": {},
    "use": {},
    "by-hand": _of(by_hand) | _of_views(by_hand),
    "before": _of_views(before),
    "training-step": _of_views(training_step) | _of(_MODEL),
    "practice": _of_views(speed) | _of(_MODEL),
}
for _name, _page in ARTICLES.items():
    PARAMETERS[_name] |= _of((article.figure_parameter(_page.FIGURES),))
