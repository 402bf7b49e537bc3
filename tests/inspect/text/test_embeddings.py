"""Word embeddings of a run, and words beside patches."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.inspect.constructed import vit_experiment
from tests.runs.waiting import tiny
from tfm_core.choices.config import ViTConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.attention.pictures import reads_patches
from tfm_core.inspect.position_tables import cosines
from tfm_core.inspect.text import embeddings
from tfm_core.inspect.text.embeddings import (
    CLASSES,
    compare_inputs,
    reads_words,
    word_class,
)
from tfm_core.models.build import build_model
from tfm_core.probe import snapshot
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

TABLE = np.random.default_rng(3).normal(size=(13, 7)).astype(np.float32)


@pytest.fixture(scope="module")
def korean(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("runs")).get("recorded-korean")


def test_rows_neighbours_and_components_are_those_of_torch():
    for id in range(13):
        row, difference = embeddings.look_up(TABLE, id)
        assert difference == 0
        np.testing.assert_array_equal(row, TABLE[id])
    rows = torch.from_numpy(TABLE)
    theirs = F.cosine_similarity(rows[:, None], rows[None], dim=-1)
    np.testing.assert_allclose(cosines(TABLE), theirs.numpy(), atol=1e-6)
    like = cosines(TABLE)[5]
    found = embeddings.neighbours(TABLE, 5, most=3, skip=4)
    others = [i for i in range(4, 13) if i != 5]
    assert [i for i, _ in found] == sorted(others, key=lambda i: -like[i])[:3]
    assert found[0][1] == pytest.approx(float(like[found[0][0]]))
    centred = torch.from_numpy(TABLE).double()
    centred = centred - centred.mean(0)
    _, sizes, right = torch.linalg.svd(centred, full_matrices=False)
    mean, axes, explained = embeddings.principal(TABLE)
    same = np.abs((axes * right[:3].numpy()).sum(1))
    np.testing.assert_allclose(same, 1, atol=1e-9)  # up to the sign
    np.testing.assert_allclose(explained, (sizes**2 / (sizes**2).sum())[:3], atol=1e-9)
    on_axes = (TABLE - mean) @ axes.T
    np.testing.assert_allclose(np.abs(on_axes), (centred @ right[:3].mT).abs(), atol=1e-5)
    assert embeddings.principal(TABLE[:, :2])[1].shape == (3, 2)


def test_the_recorded_run_keeps_tables_and_brings_classes_together(korean):
    assert embeddings.table_names(korean) == ["src_embedding", "tgt_embedding"]
    task = text_task(korean.experiment.task)
    for name, known in (
        ("src_embedding", task.src_vocabulary),
        ("tgt_embedding", task.tgt_vocabulary),
    ):
        table = embeddings.embedding_table(korean, name)
        assert table.is_whole
        steps = korean.snapshot_steps()
        assert set(table.steps) <= set(steps)
        assert (table.steps[0], table.steps[-1]) == (steps[0], steps[-1])
        assert len(table.steps) >= 8
        assert table.values.shape == (len(table.steps), len(known), 48)
        assert table.tokens[:4] == ("<pad>", "<bos>", "<eos>", "<unk>")
    table = embeddings.embedding_table(korean, "src_embedding")
    before, after = (
        embeddings.class_likeness(table.values[at], table.classes, len(SPECIALS)) for at in (0, -1)
    )
    assert abs(before[0] - before[1]) < 0.05
    assert after[0] > after[1] + 0.1
    _within, apart = embeddings.class_likeness(table.values[0], ["noun"] * len(table.tokens))
    assert np.isnan(apart)  # of one class alone


def test_without_tables_in_the_snapshots_the_first_and_the_last_state_remain(tmp_path):
    store = RunStore(tmp_path, recorded=None)
    run = store.create(tiny())
    execute(run)
    whole = embeddings.embedding_table(run, "tgt_embedding")
    for path in (run.folder / "snapshots").iterdir():
        path.unlink()
    ends = embeddings.embedding_table.__wrapped__(run, "tgt_embedding")
    assert (ends.is_whole, ends.steps) == (False, (0, 7))
    np.testing.assert_allclose(ends.values[0], whole.values[0], atol=1e-3)  # float16 in snapshots
    np.testing.assert_array_equal(ends.values[1], whole.values[-1])


def test_a_large_table_is_left_out_of_the_snapshots(tmp_path, monkeypatch):
    run = RunStore(tmp_path, recorded=None).create(tiny())
    size = 8 * len(text_task(run.experiment.task).src_vocabulary)
    monkeypatch.setattr(snapshot, "MAX_EMBEDDED", size - 1)
    execute(run)
    assert run.snapshot(7).embeddings == {}
    assert embeddings.embedding_table(run, "src_embedding").steps == (0, 7)


def test_every_word_of_the_grammar_and_of_other_tasks_has_a_class():
    task = text_task(PRESETS["translate"].experiment.task.replace(size=2))
    for known in (task.src_vocabulary, task.tgt_vocabulary):
        for id in range(len(known)):
            found = word_class("english-korean", known.token(id))
            assert found in CLASSES
            assert found != "word", known.token(id)
    for task, token, kind in [
        ("english-korean", "dog", "animals"),
        ("english-korean", "고양이", "animals"),
        ("english-korean", "ate", "verb, past"),
        ("english-korean", "을", "particle or ending"),
        ("dates", "7", "digit"),
        ("dates", "J", "letter"),
        ("dates", "-", "sign"),
        ("numbers", "forty", "word"),
        ("copy", "<pad>", "special"),
    ]:
        assert word_class(task, token) == kind


WORDS = [name for name, one in PRESETS.items() if reads_words(one.experiment)]
PIXELS = [name for name, one in PRESETS.items() if reads_patches(one.experiment)]


def table(language="translate", vision="vit-digits"):
    made = compare_inputs(PRESETS[language].experiment, PRESETS[vision].experiment)
    return {str(what): both for what, *both in made}


def test_every_model_of_words_and_of_pictures_has_its_own_numbers():
    for name in WORDS:
        experiment = PRESETS[name].experiment
        model, shape = experiment.model, data_shape(experiment)
        found = table(language=name)
        by = found["from piece to vector"][0]
        assert f"{shape.src_vocabulary:,} × {model.d_model}" in by
        n = sum(
            one.numel()
            for key, one in build_model(model, shape).named_parameters()
            if "embedding" in key
        )
        assert found["parameters for that"][0].startswith(f"{n:,},")
    for name in PIXELS:
        experiment = PRESETS[name].experiment
        assert isinstance(experiment.model, ViTConfig)
        found = table(vision=name)
        n = sum(
            one.numel()
            for key, one in build_model(experiment.model, data_shape(experiment)).named_parameters()
            if key.startswith("stem")
        )
        assert found["parameters for that"][1].startswith(f"{n:,},")
        assert "28 × 28 pixels" in found["input"][1]
    assert "to itself and earlier" in table("gpt-grammar")["attention"][0]
    assert "every other" in table("masked-words")["attention"][0]
    assert "labels, from one vector" in table("sentiment")["output"][0]
    assert "tokens at each position" in table("translate")["output"][0]
    assert "reads in order" in table("translate-additive")["positions"][0]
    words = PRESETS["translate"].experiment
    for pooling, more, label in (("mean", 0, "Mean"), ("cls", 1, "CLS token")):
        found = {what: both for what, *both in compare_inputs(words, vit_experiment(pooling))}
        assert f"Always {16 + more} tokens" in found["length"][1]
        assert f"from one vector: {label}" in found["output"][1]
