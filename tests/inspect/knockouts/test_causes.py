"""What decides in the recorded models: the token that differs, and parts that sum to the answer."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from tfm_core.data.download import DataUnavailable
from tfm_core.inspect.attention import trained
from tfm_core.inspect.knockouts.causes import (
    Pair,
    can_change,
    causes_of,
    other_picture,
    paths_of_pair,
    suggested,
    text_of,
)
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import write_probe
from tfm_core.runs.store import RECORDED

TEXTS = (
    "recorded-addition",
    "recorded-grammar",
    "recorded-korean",
    "recorded-masked-words",
    "recorded-sentiment",
    "recorded-spans",
)
PICTURES = ("recorded-captions", "recorded-digits", "recorded-notebook-vit")


@pytest.mark.core(3)
@pytest.mark.parametrize("name", [*TEXTS, *PICTURES])
def test_every_recorded_model_has_another_input_and_answers_it_differently(name: str) -> None:
    run = Run(RECORDED / name)
    text = text_of(run, 0) if name in TEXTS else ""
    pair: Pair = (text, suggested(run, text)) if text else (0, other_picture(run, 0))
    found = causes_of(run, pair)
    assert found.answers[0] != found.answers[1]
    assert found.effects is not None
    total = sum(effect for _part, effect in found.effects)
    assert total > 0  # it prefers its own answer
    streams = found.streams()
    assert streams.keys() == found.tokens.keys()
    for stack, (values, names) in streams.items():
        assert values.shape == (len(names), len(found.tokens[stack]))
    shares, attentions = found.heads()
    assert len(shares) == len(attentions)
    head = found.strongest_head()
    paths = paths_of_pair(run, pair, head)
    assert paths.total == pytest.approx(shares.flat[np.abs(shares).argmax()], abs=1e-4)
    assert paths.direct + paths.in_sum + paths.together == pytest.approx(paths.total)
    for most in (2, 5, 1000):
        for parts, whole in (
            (found.parts(most), total),
            (paths.parts(most), paths.direct + paths.in_sum),
        ):
            assert len(parts) <= most + 1
            assert parts["effect"].sum() == pytest.approx(whole, abs=1e-3)


def test_pictures_that_cannot_be_scaled_are_not_called_alike_and_others_are(
    tmp_path, monkeypatch
) -> None:
    """A run of an earlier version keeps no scale, and its data are missing."""
    run = Run(shutil.copytree(RECORDED / "recorded-notebook-vit", tmp_path / "recorded-vit"))
    values = json.loads((run.folder / "probe.json").read_text())
    (run.folder / "probe.json").write_text(
        json.dumps({name: value for name, value in values.items() if name not in ("mean", "std")})
    )

    def unavailable(_experiment: object) -> None:
        raise DataUnavailable("MNIST is not here.")

    monkeypatch.setattr(trained, "data_of", unavailable)
    with pytest.raises(DataUnavailable, match="MNIST is not here"):
        other_picture(run, 0)
    run = Run(shutil.copytree(RECORDED / "recorded-digits", tmp_path / "recorded-blind"))
    images = np.zeros_like(run.probe().images)
    write_probe(run.folder, dataclasses.asdict(run.probe()) | {"images": images})
    with pytest.raises(ValueError, match="gives all pictures the same answer"):
        other_picture(run, 0)


def test_what_differs_is_carried_to_the_answer_if_it_can_be_compared() -> None:
    run = Run(RECORDED / "recorded-addition")
    found = causes_of(run, ("289+102", "289+104"))
    values, _names = found.streams()["decoder"]
    assert found.tokens["decoder"][6] == "2"
    first = np.zeros(len(found.tokens["decoder"]))
    first[6] = 1.0
    np.testing.assert_allclose(values[0], first, atol=1e-4)
    last = np.zeros(len(first))
    last[-1] = 1.0
    np.testing.assert_allclose(values[-1], last, atol=1e-4)
    run = Run(RECORDED / "recorded-korean")
    text = text_of(run, 0)
    with pytest.raises(ValueError, match="it needs 9"):
        causes_of(run, (text, "A rabbit"))
    with pytest.raises(ValueError, match="the same answer"):
        causes_of(run, (text, text))
    with pytest.raises(ValueError, match="zebra"):
        causes_of(run, (text, "A zebra bought a big egg and a book."))
    assert not can_change(Run(RECORDED / "recorded-additive"))
