"""The file of a run, in a clean process, answers pictures and sentences as the app does."""

import json
import random
import re
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import torch
from PIL import Image

from tests.training.test_loop import experiment
from tfm_core.choices.config import CaptionTaskConfig, TextTaskConfig
from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data import caption_words
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.decoding import next_logits
from tfm_core.inspect.attention.example import look_at_picture, look_at_text
from tfm_core.inspect.attention.trained import data_of, inputs_of
from tfm_core.inspect.generation_source import source_of
from tfm_core.inspect.text import sentence
from tfm_core.inspect.text.captions import look_at_unseen
from tfm_core.runs.store import RunStore
from tfm_core.trace.source.carried import carried, spelling_of
from tfm_core.trace.source.file import source_code, text_functions
from tfm_core.training import checkpoints
from tfm_core.training.loop import build

RUNNER = """
import importlib.util, json, sys, torch
answers = {}
for name, method, arguments in json.load(open("cases.json")):
    spec = importlib.util.spec_from_file_location("generated", f"{name}/model.py")
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    model = generated.Model()
    model.load_state_dict(generated.load(f"{name}/checkpoint.safetensors"))
    answers[name] = [getattr(model, method)(argument) for argument in arguments]
json.dump(answers, open("answers.json", "w"))
assert not [name for name in sys.modules if name.startswith(("tfm_core", "safetensors"))]
"""
PEOPLE = {
    "copy": ("a b, c", "dd"),
    "addition": ("12 + 34", "7+8="),
    "sort": ("3 1 2", "9,9,0"),
    "numbers": ("forty-two", "seven hundred and one"),
    "dates": ("24 december 2026", "march 3, 1999."),
    "english-korean": ("A cat eats an apple.", "the doctor met a friend"),
    "sentiment": ("The food wasn't bad!", "the service was very slow but the food was good"),
    "masked-words": ("A ___ eats the apple", "The cat __ an apple."),
    "span-corruption": ("A ___ eats the apple __.", "The <extra_id_3> an apple."),
    "own-pairs": ("THE Man sees the zebra today.", "the\u200b dog loves"),
}
DROPPED = {"dropout": 0.3}  # an answer that forgets model.eval() is another one
TEXTS = {
    "translator": experiment("encoder-decoder", "english-korean", model=DROPPED),
    "at-once": experiment("encoder-only", "sort", model=DROPPED),
    "gpt": experiment("decoder-only", "addition", model={**DROPPED, "position": "rotary"}),
    "rnn": experiment("recurrent", "numbers", model={"dropout": 0.3, "attention": "general"}),
    "additive": experiment("recurrent", "dates", model={"attention": "additive", "cell": "lstm"}),
    "alibi": experiment("encoder-decoder", "copy", model={"position": "alibi"}),
    "t5": experiment("encoder-decoder", "span-corruption", model={"position": "t5-bias"}),
    "own": experiment("encoder-decoder", "own-pairs"),
}
LABELS = {
    f"sentiment-{pooling}": experiment("encoder-only", "sentiment", model={"pooling": pooling})
    for pooling in ("mean", "cls")
}
BLANKS = {"blanks": experiment("encoder-only", "masked-words", model={"position": "alibi"})}
WRITERS = {
    "grammar": experiment("decoder-only", "grammar", task={"unit": "words"}),
    "book": experiment("decoder-only", "own-text", task={"unit": "characters", "context": 8}),
    "pieces": experiment("decoder-only", "own-text", task={"unit": "bpe", "context": 8}),
}
PROMPTS = {"grammar": "a KIND", "book": "Alice was", "pieces": "Alice was"}
DIGITS = {
    f"digits-{pooling}": experiment("vit", "mnist-5000", model={"pooling": pooling})
    for pooling in ("mean", "cls")
}
CAPTIONS = {"captions": experiment("captioner", "captions", model=DROPPED)}
KOREAN = {"captions-korean": experiment("captioner", "captions", task={"language": "korean"})}
FAMILIES = TEXTS | LABELS | BLANKS | WRITERS | DIGITS | CAPTIONS | KOREAN
PICTURES = {**DIGITS, **CAPTIONS, **KOREAN}


def unseen(chosen, n):
    """Pictures that a run never saw, uint8 (N, 1, size, size)."""
    test = data_of(chosen).test
    return test.images[:n] if hasattr(test, "images") else test.pictures(torch.arange(n))


def asked(name):
    """What is asked of the model of a run."""
    if name in WRITERS:
        return [PROMPTS[name], ""]
    if name in PICTURES:
        return [f"{name}/{i}.png" for i in range(3)]
    return PEOPLE[FAMILIES[name].task.name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each family, untrained but for its wide weights."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    made = {}
    for name, chosen in FAMILIES.items():
        trainer = build(chosen)
        with torch.no_grad():
            for parameter in trainer.model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        made[name] = store.create(chosen, state="finished")
        checkpoints.save(trainer, made[name].folder / "checkpoints" / "last")
    return made


@pytest.fixture(scope="module")
def answers(runs, tmp_path_factory):
    """What the files answer, all executed in one clean process that sees nothing of the app."""
    root = tmp_path_factory.mktemp("taken")
    cases = []
    for name, run in runs.items():
        chosen, folder = run.experiment, root / name
        folder.mkdir()
        data = carried(chosen)
        text = source_code(chosen.model, data_shape(chosen), data=data)
        assert max(map(len, text.splitlines())) <= 100
        (folder / "model.py").write_text(text, encoding="utf-8")
        weights = run.folder / "checkpoints" / "last" / "checkpoint.safetensors"
        (folder / "checkpoint.safetensors").write_bytes(weights.read_bytes())
        if name in PICTURES:
            for i, picture in enumerate(unseen(chosen, 3)):
                Image.fromarray(picture[0].numpy()).save(folder / f"{i}.png")
        cases.append((name, data.verb, asked(name)))
    (root / "cases.json").write_text(json.dumps(cases))
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads((root / "answers.json").read_text())


@pytest.mark.core(2)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_answered_as_the_app_answers_it(runs, answers, name):
    assert answers[name] == [look_at_text(runs[name], text).answer_text for text in asked(name)]


@pytest.mark.parametrize("name", LABELS)
def test_a_sentence_gets_the_apps_label(runs, answers, name):
    for text, (label, chance) in zip(asked(name), answers[name], strict=True):
        read = sentence.read_sentence(runs[name], text)
        assert label == read.labels[read.predicted]
        assert chance == pytest.approx(read.probabilities.max(), abs=1e-4)


def test_blanks_are_filled_as_in_the_app(runs, answers):
    run = runs["blanks"]
    for text, filled in zip(asked("blanks"), answers["blanks"], strict=True):
        words = list(sentence.blank_tokens(run, text))
        for blank in sentence.fill_blanks(run, tuple(words))[1]:
            words[blank.position] = next(iter(blank.model))
        assert filled == text_task(run.experiment.task).join_src(words)


@pytest.mark.parametrize("name", WRITERS)
def test_a_language_model_writes_on_as_in_the_app(runs, answers, name):
    run = runs[name]
    task = text_task(run.experiment.task)
    for prompt, text in zip(asked(name), answers[name], strict=True):
        source = source_of(run, "")
        ids = task.tgt_vocabulary.encode(task.tokenize(prompt)) if prompt.strip() else []
        for _step in range(40):
            row = torch.tensor([ids], dtype=torch.int64).reshape(1, -1)
            logits = next_logits(source.writer, source.src, row, source.context)[0]
            logits[list(source.never)] = -torch.inf
            ids.append(int(logits.argmax()))
        tokens = source.tokens_of(ids)
        assert text == task.join_tgt([token for token in tokens if token != "<eos>"])


@pytest.mark.parametrize("name", DIGITS)
def test_a_picture_gets_the_apps_class(runs, answers, name):
    run = runs[name]
    for picture, (label, chance) in zip(unseen(run.experiment, 3), answers[name], strict=True):
        shares = look_at_picture(run, picture.numpy()).probabilities
        assert label == str(int(shares.argmax()))
        assert chance == pytest.approx(float(shares.max()), abs=1e-4)


@pytest.mark.parametrize("name", [*CAPTIONS, *KOREAN])
def test_a_picture_is_described_as_in_the_app(runs, answers, name):
    said = [look_at_unseen(runs[name], row).example.answer_text for row in range(3)]
    assert answers[name] == said


def made(run, **settings):
    """The names of a run's file, executed here."""
    names = {"__name__": "generated"}
    chosen = run.experiment
    text = source_code(chosen.model, data_shape(chosen), data=carried(chosen), **settings)
    exec(text, names)
    model = names["Model"]().eval()
    path = run.folder / "checkpoints" / "last" / "checkpoint.safetensors"
    model.load_state_dict(names["load"](path))
    return model, names


@pytest.fixture
def recorded(tmp_path):
    return RunStore(tmp_path)


def test_recorded_digits_and_sentences_are_answered(recorded):
    run = recorded.get("recorded-digits")
    model, _names = made(run)
    test = data_of(run.experiment).test
    for pictures in (test.images.float() / 255, test.images, test.images.float()):
        said = [label for label, _share in model.classify(pictures)]
        right = np.mean([label == str(int(n)) for label, n in zip(said, test.labels, strict=True)])
        assert right >= 0.97
    assert model.classify(test.images[0])[0] == said[0]
    image = Image.fromarray(test.images[0, 0].numpy()).resize((56, 56))
    assert model.classify(image)[0] == said[0]
    run = recorded.get("recorded-korean")
    for form in ("written", "fused"):
        model, _names = made(run, form=form)
        assert model.translate("The cat ate an apple.") == (
            look_at_text(run, "the cat ate an apple").answer_text
        )
        with pytest.raises(ValueError, match="the model never learned zebra"):
            model.translate("a zebra")


@pytest.mark.parametrize("run_id", ["recorded-korean", "recorded-digits"])
def test_the_weights_that_are_returned_are_the_recorded_maps(recorded, run_id):
    run = recorded.get(run_id)
    model, _names = made(run)
    probe, snapshot = run.probe(), run.snapshot(run.snapshot_steps()[-1])
    for index, item in enumerate(probe.attended[:3]):
        picture = None if probe.images is None else probe.images[index]
        with torch.no_grad():
            _answer, weights = model(*inputs_of(run, item, picture), return_weights=True)
        assert set(weights) == set(snapshot.attention)
        for name, map_ in snapshot.attention.items():
            ours = weights[name][0].numpy()
            theirs = map_[index, :, : ours.shape[1], : ours.shape[2]]
            np.testing.assert_allclose(ours, theirs.astype(np.float32), atol=2e-3)


def test_the_command_of_the_page_just_works(recorded, tmp_path):
    run = recorded.get("recorded-korean")
    chosen = run.experiment
    path = tmp_path / "model.py"
    data = carried(chosen)
    path.write_text(source_code(chosen.model, data_shape(chosen), data=data), encoding="utf-8")
    weights = run.folder / "checkpoints" / "last" / "checkpoint.safetensors"
    command = [sys.executable, str(path), "--checkpoint", str(weights), data.example]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == look_at_text(run, data.example).answer_text
    done = subprocess.run([*command[:2], "a cat"], capture_output=True, text=True, check=False)
    assert "without --checkpoint the weights are random" in done.stderr


def spelled(task):
    """``cut`` and ``joined`` of a task's file."""
    spelling, names = spelling_of(task), {"re": re, "unicodedata": unicodedata}
    exec(text_functions(spelling), names)
    return names


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_every_task_is_cut_and_joined_as_in_the_app(name):
    config = TextTaskConfig(name=name, size=TEXT_TASKS[name].sizes[-1])
    task, names, rng = text_task(config), spelled(config), random.Random(3)
    for pair in (task.sample(rng) for _ in range(40)):
        text = task.join_src(pair.src)
        assert tuple(names["cut"](text)) == task.tokenize(text) == pair.src
        assert names["joined"](list(pair.tgt)) == task.join_tgt(pair.tgt)
    for text in PEOPLE.get(name, ()):
        assert tuple(names["cut"](text)) == task.tokenize(text)


@pytest.mark.parametrize("language", ["english", "korean"])
def test_a_caption_is_joined_as_in_the_app(language):
    config = CaptionTaskConfig(language=language, n_digits=3)
    words = caption_words.vocabulary(config).tokens
    rng = random.Random(3)
    for _ in range(20):
        some = [rng.choice(words) for _ in range(7)]
        assert spelled(config)["joined"](some) == caption_words.join(some, config)
