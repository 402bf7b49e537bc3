"""The rules by which a page cuts and joins texts are those of the tasks, word for word."""

import json
import random
import shutil
import subprocess

import pytest

from pages.components.files import FOLDER
from tests.trace.source.test_use import PEOPLE
from tests.training.test_loop import experiment
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.data.tasks import text_task
from tfm_core.data.user_data.tokens import learn_from_sentences
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.export.query_settings import as_json, query_settings
from tfm_core.trace.source.carried import carried

NODE = shutil.which("node")
RUNNER = """
import { readFileSync } from "node:fs";
const { cut, joined } = await import(process.argv[1]);
const cases = JSON.parse(readFileSync(0, "utf8"));
const answers = cases.map(({ told, typed, tokens }) => ({
  cut: typed.map((text) => cut(text, told)),
  joined: tokens.map((one) => joined(one, told)),
}));
console.log(JSON.stringify(answers));
"""
EXPERIMENTS = {
    **{name: experiment(TEXT_TASKS[name].families[0], name) for name in TEXT_TASKS},
    "own-pairs": Experiment.parse(default_sections("encoder-decoder", "own-pairs")),
    "own-labels": Experiment.parse(default_sections("encoder-only", "own-labels")),
    "grammar": experiment("decoder-only", "grammar", task={"unit": "words"}),
    "letters": experiment("decoder-only", "own-text", task={"unit": "characters"}),
    "parts": experiment("decoder-only", "own-text", task={"unit": "bpe"}),
    "book": experiment("decoder-only", "own-text", task={"unit": "words"}),
}


def case(chosen):
    """What a person may type, tokens of many targets, and what the page is told."""
    data = carried(chosen)
    task, rng = text_task(chosen.task), random.Random(3)
    pairs = [task.sample(rng) for _ in range(40)]
    typed = [*PEOPLE.get(task.name, ()), *(task.join_src(pair.src or pair.tgt) for pair in pairs)]
    return {
        "told": as_json(query_settings(chosen, data), data),
        "typed": typed,
        "tokens": [pair.tgt for pair in pairs],
    }


def answers(cases):
    """What the page's own rules make of cases."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUNNER, (FOLDER / "asking.js").as_uri()],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


with_node = pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")


@with_node
def test_the_page_cuts_and_joins_as_tasks_and_sets_do() -> None:
    cases = {name: case(chosen) for name, chosen in EXPERIMENTS.items()}
    for (name, one), answer in zip(cases.items(), answers(list(cases.values())), strict=True):
        task = text_task(EXPERIMENTS[name].task)
        wanted = [list(task.tokenize(text)) for text in one["typed"]]
        assert answer["cut"] == wanted, name
        assert answer["joined"] == [task.join_tgt(tokens) for tokens in one["tokens"]], name
    task = text_task(EXPERIMENTS["own-pairs"].task)
    texts = [task.join_src(pair.src) for pair in task.splits["train"]]
    cutter = learn_from_sentences("bpe", texts, n_merges=60)
    tokens = [cutter.cut(text) for text in texts]
    known = {token for one in tokens for token in one}
    told = {
        "how": "write",
        "cut": "pieces",
        "join": "united",
        "merges": [" ".join(pair) for pair in cutter.merges],
        "most_read": 999,
        "src": [*SPECIALS, *known],
    }
    (answer,) = answers([{"told": told, "typed": texts, "tokens": tokens}])
    assert answer["cut"] == [list(one) for one in tokens]
    assert answer["joined"] == [cutter.join(one) for one in tokens]
