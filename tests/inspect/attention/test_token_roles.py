"""What tokens know: probes read what is there and not what is not, conclusions follow them."""

import numpy as np
import pandas as pd
import pytest

from tests.inspect.attention.test_own_example import trained
from tests.inspect.constructed import vit_experiment
from tfm_core.inspect.attention import pictures
from tfm_core.runs.store import RECORDED, RunStore


def test_a_probe_reads_what_lies_in_a_vector_and_nothing_from_noise():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 300)
    known = np.eye(7)[labels] + 0.1 * rng.normal(size=(300, 7))
    noise = rng.normal(size=(300, 7))
    targets = np.eye(3)[labels]
    right = [
        (pictures._probe(x[:200], targets[:200], x[200:]).argmax(1) == labels[200:]).mean()
        for x in (known, noise)
    ]
    assert right[0] == 1
    assert right[1] < 0.6


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_before_the_first_layer_cls_knows_nothing_of_the_picture(tmp_path, pooling, monkeypatch):
    monkeypatch.setattr(pictures, "N_FIT", 120)
    monkeypatch.setattr(pictures, "N_TRIED", 60)
    run = trained(tmp_path, vit_experiment(pooling))[0]
    found, looks, _facts = pictures.token_roles(run)
    assert ("cls" in found) == (pooling == "cls")
    assert list(found.index) == [0, 1, 2, "ink"]
    if pooling == "cls":
        assert found["cls"][0] < 0.25
        assert found["cls"][0] < found["mean"][0]
        assert all(0 < share < 1 for share in looks)
    else:
        assert not looks


def test_the_recorded_run_gathers_in_the_mean_what_no_patch_knows(tmp_path):
    run = RunStore(tmp_path, recorded=RECORDED).get("recorded-digits")
    digit = pictures.token_roles(run)[0].iloc[:-1]
    assert digit["mean"].iloc[-1] > 0.9
    assert digit["mean"].iloc[-1] > digit["patch"].iloc[-1] > 2 * digit["patch"].iloc[0]


def test_the_conclusion_follows_the_figures():
    for digit, ink, words in [
        (
            {"cls": [0.1, 0.9], "mean": [0.8, 0.9], "patch": [0.3, 0.6]},
            {"cls": 0.1, "mean": 0.2, "patch": 0.7},
            "Its own token tells 70% of the ink",
        ),
        (
            {"cls": [0.1, 0.4], "mean": [0.8, 0.9], "patch": [0.3, 0.6]},
            {"cls": 0.1, "mean": 0.2, "patch": 0.7},
            "A single patch tells more",
        ),
        (
            {"cls": [0.1, 0.64], "mean": [0.8, 0.9], "patch": [0.3, 0.643]},
            {"cls": 0.1, "mean": 0.2, "patch": 0.7},
            "With 400 pictures, this difference may be chance",
        ),
        (
            {"mean": [0.8, 0.9], "patch": [0.3, 0.6]},
            {"mean": 0.8, "patch": 0.7},
            "the mean of the patches 80%",
        ),
    ]:
        read = pd.concat([pd.DataFrame(digit), pd.DataFrame([ink])])
        said = pictures.token_conclusion(read, 400, 0.113)
        assert words in said
        assert "guessing is right in 11.3%" in said
        name = "the CLS token" if "cls" in digit else "the mean of the patches"
        assert f"After the last layer, the digit can be read from {name} in" in said
