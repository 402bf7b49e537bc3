"""Numbers that pages show of a run, against those of its weights and of the events in its folder.

What is compared with is computed here, by a forward pass or from the lines of the file, and by
nothing that a page calls for its numbers.
"""

import json
import re

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from tests.pages.looking import part_of, said
from tests.pages.opening import opened_at
from tfm_core.inspect.attention.trained import data_of
from tfm_core.probe.capture import capture
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED
from tfm_core.training.checkpoints import load_model

DIGITS, KOREAN = Run(RECORDED / "recorded-digits"), Run(RECORDED / "recorded-korean")


pytestmark = pytest.mark.usefixtures("recorded")


def events(run, kind):
    lines = (run.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def trained(run):
    return load_model(run.experiment, run.folder / "checkpoints" / "last")[0].eval()


@torch.no_grad()
def scores(model, n):
    """Return accuracy and loss on the first validation pictures."""
    data = data_of(DIGITS.experiment)
    labels = data.validation.labels[:n]
    logits = model(data.normalise(data.validation.images[:n]))
    right = (logits.argmax(-1) == labels).float().mean()
    return float(right), float(F.cross_entropy(logits, labels))


def lists(app):
    return "\n".join(one.value for one in app.markdown if one.value.startswith("- "))


def per_cent(text):
    return float(text.removesuffix("%").removesuffix(" points")) / 100


def test_knockouts_show_what_the_model_loses_on_its_first_200_validation_examples():
    app = opened_at("look_inside/knockouts/page.py", run=DIGITS.id, off="encoder.1.self")
    shown = {one.label: (one.value, one.delta) for one in app.metric}
    before = scores(trained(DIGITS), n=200)
    model = trained(DIGITS)
    model.encoder.layers[0].self_attention.register_forward_hook(
        lambda _module, _inputs, out: torch.zeros_like(out)
    )
    after = scores(model, n=200)
    right, points = shown["Pictures right"]
    assert per_cent(right) == pytest.approx(after[0], abs=6e-4)
    assert per_cent(points) == pytest.approx(after[0] - before[0], abs=6e-4)
    loss, rise = shown["Loss"]
    assert float(loss) == pytest.approx(after[1], abs=6e-4)
    assert float(rise) == pytest.approx(after[1] - before[1], abs=6e-3)
    assert after[1] > before[1] + 1


def test_mistakes_counts_the_pictures_that_the_model_gets_wrong():
    app = opened_at("look_inside/mistakes.py", run=DIGITS.id)
    wrong = round(500 * (1 - scores(trained(DIGITS), n=500)[0]))
    assert f"**{wrong} of 500** validation examples are wrong" in said(app)


def test_the_stage_and_the_curves_get_the_numbers_of_the_events():
    app = opened_at("train/page.py", run=DIGITS.id)
    (sent,) = json.loads(part_of(app, "stage").json)
    batches, measured = events(DIGITS, "step"), events(DIGITS, "measured")
    known = {
        "batch": batches,
        "validation": [one for one in measured if one["split"] == "validation"],
    }
    n_compared = 0
    for line in sent["lines"]:
        if line["role"] in known:
            values = {one["step"]: one[line["quantity"]] for one in known[line["role"]]}
            expected = [values[step] for step in line["steps"]]
            assert line["values"] == pytest.approx(expected, rel=1e-3, abs=1e-4)
            n_compared += 1
    assert n_compared == 4  # loss and accuracy, of batches and of validation
    assert sent["now"] == sent["total"] == 3000
    assert not sent["autoplay"]  # a run of one's own is looked at first


def test_a_prompt_has_the_text_that_went_on_beside_what_the_model_writes():
    run = Run(RECORDED / "recorded-grammar")
    item = json.loads((run.folder / "probe.json").read_text(encoding="utf-8"))["items"][0]
    text = said(opened_at("look_inside/attention/page.py", run=run.id))
    assert text.index("Prompt") < text.index("True continuation") < text.index("The model writes")
    assert item["tgt_text"] in text


def test_an_example_without_saved_attention_says_so_and_the_one_before_has_maps():
    runs = "recorded-causal-mask,recorded-no-mask"
    probe = json.loads((RECORDED / "recorded-no-mask" / "probe.json").read_text(encoding="utf-8"))
    last, behind = (
        opened_at("compare/compare.py", runs=runs, at="0", example=str(probe["n_attended"] + k))
        for k in (0, 1)
    )
    assert "No attention was saved" not in said(last)
    assert "No attention was saved" in said(behind)


def test_a_map_in_words_has_the_greatest_weight_of_each_row():
    app = opened_at(
        "look_inside/attention/page.py", run=KOREAN.id, kind="cross", layer="1", head="1"
    )
    rows = re.findall(r"reads “[^”]+” \((\d+)\) most, ([\d.]+\d)$", lists(app), re.MULTILINE)
    model, data = trained(KOREAN), data_of(KOREAN.experiment)
    tgt_in = data.validation.tgt[:1, :-1]
    with capture(model, only={"weights"}) as cache, torch.no_grad():
        model(data.validation.src[:1], tgt_in)
    weights = cache.of("weights")["decoder.layers.0.cross_attention"][0, 0]
    n = int((tgt_in != 0).sum()) - 1  # without padding and <eos>, after which nothing is written
    assert len(rows) == n > 5
    for (place, weight), row in zip(rows, weights[:n], strict=True):
        assert int(place) == int(row.argmax()) + 1
        assert float(weight) == pytest.approx(float(row.max()), abs=2e-3)


def test_compare_shows_the_losses_and_accuracies_that_were_measured():
    runs = [Run(RECORDED / name) for name in ("recorded-one-head", "recorded-many-heads")]
    app = opened_at("compare/compare.py", runs=",".join(run.id for run in runs))
    table = app.dataframe[0].value
    for run, (_number, row) in zip(runs, table.iterrows(), strict=True):
        measured = [one for one in events(run, "measured") if one["split"] == "validation"]
        lowest = min(measured, key=lambda one: one["loss"])
        highest = max(measured, key=lambda one: one["accuracy"])
        assert f"run={run.id}" in row["open"]
        assert row["Parameters"] == sum(one.numel() for one in trained(run).parameters())
        assert row["Validation loss"] == pytest.approx(measured[-1]["loss"], rel=1e-6)
        assert row["Lowest"] == pytest.approx(lowest["loss"], rel=1e-6)
        assert row["Lowest at step"] == lowest["step"]
        assert row["Validation accuracy"] == pytest.approx(measured[-1]["accuracy"], rel=1e-6)
        assert row["Highest"] == pytest.approx(highest["accuracy"], rel=1e-6)
        assert row["Highest at step"] == highest["step"]


def test_a_translator_writes_what_its_model_holds_most_likely():
    app = opened_at("try_it/page.py", run=KOREAN.id, step="1000")
    sent = part_of(app, "writing_desk").bytes
    length = int.from_bytes(sent[:4], "little")
    header = json.loads(sent[4 : 4 + length])
    model, words = trained(KOREAN), data_of(KOREAN.experiment).task
    src = torch.tensor([words.src_vocabulary.encode(header["keys"])])
    ids = [1]  # <bos>
    for step in header["steps"]:
        with torch.no_grad():
            chances = model(src, torch.tensor([ids]))[0, -1].softmax(-1)
        ids.append(int(chances.argmax()))
        assert step["token"] == words.tgt_vocabulary.token(ids[-1])
        assert step["best"][0][2] == pytest.approx(float(chances.max()), abs=2e-3)
    assert ids[-1] == 2  # <eos>


def test_compute_counts_two_operations_a_product_and_three_passes_a_step():
    app = opened_at("look_inside/parameters.py", run=DIGITS.id, tab="compute")
    shown = {one.label: one.value for one in app.metric}
    model, n = trained(DIGITS), DIGITS.experiment.training.batch_size
    with capture(model), FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(n, 1, 28, 28))  # the counter knows no fused kernel of CPUs
    forward = counter.get_total_flops()
    assert number(shown["Forward, in FLOPs"]) == pytest.approx(forward, rel=0.01)
    assert number(shown["Forward"].removesuffix(" MAC")) == pytest.approx(forward / 2, rel=0.01)
    assert number(shown["Training step, in FLOPs"]) == pytest.approx(3 * forward, rel=0.01)


def number(text):
    """Return a number that ends in thousands, millions or thousand millions."""
    ends = {"k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
    return float(text[:-1].strip()) * ends[text[-1]] if text[-1] in ends else float(text)


def test_the_count_of_parameters_is_that_of_the_weights():
    app = opened_at("look_inside/parameters.py", run=DIGITS.id)
    n = sum(one.numel() for one in trained(DIGITS).parameters())
    assert f"{n:,}" in said(app)


def test_a_walk_shows_what_the_model_read_and_made():
    app = opened_at("look_inside/walk.py", run=DIGITS.id, step="patches")
    first = data_of(DIGITS.experiment)
    with torch.no_grad():
        images = first.normalise(first.validation.images[:1])
        seen = F.gelu(trained(DIGITS).stem.convolution(images))
    for numbers in (images, seen):
        text = ", ".join(f"{one:.3f}" for one in numbers.flatten()[:4].tolist())
        assert f"numbers {text.replace('-0.000', '0')}, …" in said(app)
