"""Train the recorded runs anew: ``python -m tfm_core.recorded.build [ID ...]`` (eight minutes).

They are ordinary runs, made small: fewer steps in their events and shorter numbers there, the
attention of fewer examples, tables of embeddings in some snapshots only, and of the checkpoints the
last, in half precision. Training further starts from exactly its weights; the optimiser's moments
begin anew.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.speed import report
from tfm_core.inspect.speed.measure import clock_name, measure, step_time
from tfm_core.inspect.speed.report import DEVICE, LENGTHS, MEASURED, PRESET
from tfm_core.runs import snapshots
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import LESSONS, RECORDED, RunStore
from tfm_core.studies import grokking, superposition
from tfm_core.studies.experiments import COPY_RACE, NO_MASK, TRANSLATION_RACE, WRITER
from tfm_core.studies.phenomena import PHENOMENA
from tfm_core.studies.practice import STUDY
from tfm_core.studies.study import changed
from tfm_core.training.checkpoints import FILE

EMBEDDED_EVERY = 4
"""Snapshots from one that keeps the tables of embeddings to the next."""
DIGITS = 5  # significant ones of the numbers in the events
STEPS = 200
"""Most steps that the events of a recording tell of."""
_KEPT = (
    "experiment.json",
    "meta.json",
    "status.json",
    "events.jsonl",
    "best.json",
    "probe.json",
    "probe.safetensors",
    "snapshots",
    "checkpoints",
    "weights",
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run to record: its name, what is trained, how much is kept of it.

    preset: the preset to train a similar run. attended: number of examples whose attention is kept.
    weight_sets: number of steps whose weights are kept. is_lesson: only one page shows it.
    kept: number of snapshots that are kept, 0 for all. embedded_every: snapshots from one that
    keeps the tables of embeddings to the next.
    """

    name: str
    experiment: Experiment
    preset: str | None = None
    snapshots: int = 4
    attended: int = 6
    weight_sets: int = 0
    is_lesson: bool = False
    kept: int = 0
    embedded_every: int = EMBEDDED_EVERY


@dataclass(frozen=True, slots=True)
class Kept:
    """How many snapshots and weights are kept of the run that shows a finding, and of its controls.

    attended: number of examples whose attention is kept.
    """

    snapshots: int
    of_controls: int = 2
    weights: int = 0
    weights_of_controls: int = 0
    attended: int = 1


FINDINGS = {
    "induction": Kept(22),
    "chains": Kept(12),
    "grokking": Kept(14),
    "adder": Kept(12, weights=13, weights_of_controls=7),
    "sinks": Kept(14, of_controls=8, attended=3),
    "memorising": Kept(4, weights=5),
}
"""The findings that come with the app, by name."""


def _of_preset(
    preset: str, name: str, snapshots: int = 4, *, attended: int = 6, weight_sets: int = 0
) -> Recording:
    experiment = PRESETS[preset].experiment
    return Recording(name, experiment, preset, snapshots, attended, weight_sets)


def _digits() -> Experiment:
    """Return the reader of digits with patches of 4 x 4: 49 tokens show what a head looks at."""
    base = PRESETS["vit-digits"].experiment
    model = {"d_model": 48, "n_heads": 3, "d_ff": 96, "patch_size": 4}
    return base.replace(
        model=base.model.replace(**model).model_dump(),
        task=base.task.replace(rotation=10.0, scale=0.1).model_dump(),
        training={"steps": 3000, "batch_size": 64},
    )


def _translator() -> Experiment:
    """Return the translator with layers enough for its heads to differ.

    Three layers that write, norms behind them as in the paper, and a strong weight decay, which
    lets go of what no answer needs: the last layer aligns, and heads of the first do not.
    """
    base = PRESETS["translate"].experiment
    model = {"d_model": 48, "d_ff": 96, "n_decoder_layers": 3, "norm_first": False}
    return base.replace(
        model=base.model.replace(**model).model_dump(),
        training=base.trained.replace(
            steps=1000, learning_rate=0.008, weight_decay=0.3
        ).model_dump(),
    )


def _practice() -> dict[str, Recording]:
    """Return the guided runs of good practice."""
    names = {"plain": "no augmentation", "early": "stopped early", "augmented": "augmented"}
    return {
        f"recorded-practice-{arm.name}": Recording(
            f"Practice: {names[arm.name]}, recorded",
            STUDY.experiment(arm),
            snapshots=STUDY.base.trained.snapshots,
            attended=1,
            is_lesson=True,
        )
        for arm in STUDY.arms
    }


def _positions() -> dict[str, Recording]:
    """Return one run for each kind of positions, on sequences that are copied."""
    return {
        f"recorded-positions-{arm.name}": Recording(
            f"Copy, positions: {arm.label.lower()}, recorded",
            COPY_RACE.experiment(arm),
            snapshots=2,
            attended=1,
            is_lesson=True,
        )
        for arm in COPY_RACE.arms
    }


def _findings() -> dict[str, Recording]:
    """Return the runs of the findings that come with the app, as their pages train them."""
    found = {}
    for name, kept in FINDINGS.items():
        one = PHENOMENA[name]
        for arm in one.arms:
            experiment, is_first = one.experiment(arm), arm is one.arms[0]
            found[f"recorded-{name}-{arm.name}"] = Recording(
                f"{one.title}: {arm.label}, recorded",
                experiment,
                snapshots=experiment.trained.snapshots,
                attended=kept.attended,
                weight_sets=kept.weights if is_first else kept.weights_of_controls,
                is_lesson=True,
                kept=kept.snapshots if is_first else kept.of_controls,
                embedded_every=1 if is_first else EMBEDDED_EVERY,
            )
    return found


_RACERS = TRANSLATION_RACE.experiments

RECORDINGS = {
    "recorded-digits": Recording(
        "Digits, recorded", _digits(), "vit-digits", 34, attended=2, weight_sets=9
    ),
    "recorded-korean": Recording(
        "English to Korean, recorded", _translator(), "translate", 34, attended=2, weight_sets=8
    ),
    "recorded-sentiment": _of_preset("sentiment", "Sentiment, recorded"),
    "recorded-masked-words": _of_preset("masked-words", "Masked words, recorded"),
    "recorded-grammar": _of_preset("gpt-grammar", "A GPT of sentences, recorded", 32, attended=2),
    "recorded-additive": Recording(
        "RNN, additive attention, recorded", _RACERS["additive"], snapshots=2
    ),
    "recorded-one-head": Recording(
        "Transformer, one head, recorded", _RACERS["one-head"], snapshots=2
    ),
    "recorded-many-heads": Recording(
        "Transformer, four heads, recorded", _RACERS["many-heads"], snapshots=2
    ),
    "recorded-causal-mask": Recording(
        "Small translator, recorded", WRITER, snapshots=4, attended=2
    ),
    "recorded-no-mask": Recording(
        "No causal mask, recorded", changed(WRITER, NO_MASK.changes), snapshots=4, attended=2
    ),
    "recorded-spans": _of_preset("span-corruption", "Hidden spans (T5), recorded", 6),
    "recorded-notebook-vit": _of_preset("vit-text", "The notebook’s ViT, recorded", 12, attended=2),
    "recorded-captions": _of_preset("captions", "Pictures to words, recorded", 2, attended=2),
    "recorded-addition": _of_preset("addition-3", "A GPT that adds, recorded", 4, attended=2),
    **_practice(),
    **_positions(),
    **_findings(),
}


SPEED = "speed"
"""What the command calls the measurements of speed."""
_TABLED = "recorded-grokking-decay"
"""The run whose table of sums is kept over its training."""
TIMES = "times"
"""What it calls the measurements of step time against sequence length."""


def main(chosen: list[str]) -> None:
    """Train the recordings of these ids and measure speed, or all, and put each in its place."""
    toy = superposition.SUPERPOSITION.name
    chosen = chosen or [*RECORDINGS, SPEED, TIMES, toy]
    torch.set_num_threads(1)
    if toy in chosen:
        superposition.record()
    if SPEED in chosen:
        record_speed()
    if TIMES in chosen:
        record_times()
    for run_id in (name for name in chosen if name not in (SPEED, TIMES, toy)):
        with tempfile.TemporaryDirectory() as folder:
            record(Path(folder), RECORDINGS[run_id], place_of(run_id))
        if run_id == _TABLED:
            grokking.record(Run(place_of(run_id)))
        size = sum(path.stat().st_size for path in place_of(run_id).rglob("*"))
        print(f"{run_id}: {size / 1e6:.2f} MB", flush=True)


def place_of(run_id: str) -> Path:
    """Return the folder of a recorded run."""
    return RECORDED / (LESSONS if RECORDINGS[run_id].is_lesson else "") / run_id


def record(workplace: Path, recording: Recording, target: Path) -> None:
    """Train in ``workplace`` and copy what readers need to ``target``."""
    experiment = recording.experiment
    training = experiment.trained.replace(snapshots=recording.snapshots)
    run = RunStore(workplace, recorded=None).create(
        experiment.replace(training=training.model_dump()),
        name=recording.name,
        preset=recording.preset,
    )
    status = execute(run)
    if status.state != "finished":
        raise RuntimeError(f"{recording.name} ended as {status.state}: {status.reason}")
    if not experiment.trained.keeps_best:
        shutil.rmtree(run.folder / "checkpoints" / "best", ignore_errors=True)
    thin(run, recording.weight_sets)
    for checkpoint in (run.folder / "checkpoints").glob(f"*/{FILE}"):
        shrink(checkpoint)
    shorten(run.folder / "events.jsonl")
    trim(run, recording.attended, recording.kept, recording.embedded_every)
    if target.is_dir():  # it keeps its place among the others
        run.write_meta(dataclasses.replace(run.meta, created=Run(target).meta.created))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for part in _KEPT:
        source = run.folder / part
        if source.is_dir():
            shutil.copytree(source, target / part)
        elif source.exists():
            shutil.copyfile(source, target / part)


def record_speed() -> None:
    """Measure what can be on any machine, on a preset, and keep the lines of each comparison."""
    experiment = PRESETS[PRESET].experiment
    for name in MEASURED:
        lines: list[dict[str, object]] = [
            {
                "clock": clock_name(DEVICE),
                "torch": torch.__version__.partition("+")[0],
                "day": f"{datetime.now(UTC):%Y-%m-%d}",
            }
        ]

        def say(kind: str, lines: list[dict[str, object]] = lines, **facts: object) -> None:
            if kind != "progress":
                lines.append({"kind": kind, **facts})

        measure(name, experiment, DEVICE, say)
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (RECORDED.parent / f"{SPEED}-{name}.jsonl").write_text(text, encoding="utf-8")
        print(f"{SPEED}: {name}", flush=True)


def record_times() -> None:
    """Measure a step of each model at each length, and keep the seconds."""
    configs = alignment.rnn_models()
    seconds = {
        name: [float(f"{step_time(configs[name], n):.4g}") for n in LENGTHS] for name in configs
    }
    facts = {"torch": torch.__version__.partition("+")[0], "day": f"{datetime.now(UTC):%Y-%m-%d}"}
    text = json.dumps({**facts, "lengths": LENGTHS, "seconds": seconds}, indent=1)
    report.RECORDED_TIMES.write_text(text + "\n", encoding="utf-8")
    print(f"{TIMES}: {', '.join(seconds)}", flush=True)


def shorten(path: Path) -> None:
    """Keep ``STEPS`` steps of an events file, and ``DIGITS`` significant digits of its numbers.

    Half of the steps are evenly spaced, half log-spaced; whole numbers and other events stay.
    """
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    steps = [record["step"] for record in records if record["event"] == "step"]
    last = len(steps) - 1
    even, log = np.linspace(0, last, STEPS // 2), np.geomspace(1, last + 1, STEPS // 2) - 1
    chosen = {steps[int(at)] for at in (*even.round(), *log.round())}
    records = [r for r in records if r["event"] != "step" or r["step"] in chosen]
    for record in records:
        for name, value in record.items():
            if isinstance(value, float):
                record[name] = float(f"{value:.{DIGITS}g}")
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    path.write_text(text, encoding="utf-8")


def shrink(path: Path) -> None:
    """Take the optimiser's moments out of a checkpoint, and write its weights in half precision."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {
            name: file.get_tensor(name)
            for name in file.keys()  # noqa: SIM118
            if not name.startswith("optimizer/")
        }
    halves = {
        name: value.half() if value.is_floating_point() else value
        for name, value in tensors.items()
    }
    save_file(halves, path, metadata)


def thin(run: Run, most: int) -> None:
    """Keep the weights of at most so many steps, evenly chosen, with the first and the last."""
    steps = run.weight_steps()
    chosen = {steps[round(at)] for at in np.linspace(0, len(steps) - 1, most)} if steps else set()
    for step in steps:
        if step not in chosen:
            snapshots.weights_path(run.folder, step).unlink()


def trim(run: Run, attended: int, kept: int, embedded_every: int) -> None:
    """Keep the attention of the first examples, and embeddings in the first, last and some others.

    attended: how many examples. kept: how many snapshots, at even steps; 0 for all.
    embedded_every: snapshots from one with embeddings to the next.
    """
    steps = run.snapshot_steps()
    if kept:
        even = np.linspace(0, steps[-1], kept)
        chosen = {min(steps, key=lambda step: abs(step - at)) for at in even}
        for step in set(steps) - chosen:
            snapshots.snapshot_path(run.folder, step).unlink()
        steps = run.snapshot_steps()
    whole = {steps[0], *steps[::-embedded_every]}
    for step in steps:
        snapshot = run.snapshot(step)
        maps = {name: kept[:attended] for name, kept in snapshot.attention.items()}
        masks = {name: mask[:attended] for name, mask in snapshot.masks.items()}
        routing = {name: gates[:attended] for name, gates in snapshot.routing.items()}
        embeddings = snapshot.embeddings if step in whole else {}
        cut = dataclasses.replace(
            snapshot, attention=maps, masks=masks, embeddings=embeddings, routing=routing
        )
        snapshots.write_snapshot(run.folder, cut)
    probe = run.probe()
    if attended < len(probe.items):
        snapshots.write_probe(run.folder, dataclasses.asdict(probe) | {"n_attended": attended})


if __name__ == "__main__":
    main(sys.argv[1:])
