"""Runs as ONNX files and as TensorBoard logs."""

import io
import itertools
import json
from datetime import datetime

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from tests.export.exported import members, unpacked, untrained
from tests.models.variants import (
    CAPTION_SHAPE,
    SRC_WORDS,
    TGT_WORDS,
    S,
    T,
    captioner_model,
    text_batch,
    text_config,
    text_model,
    vit_model,
)
from tests.runs.waiting import tiny
from tests.training.test_loop import experiment
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.stems import POOLINGS, STEMS
from tfm_core.cli import main
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.export import onnx as export
from tfm_core.export import tensorboard
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.models.build import build_text
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.training import checkpoints
from tfm_core.training.loop import build

TEXTS = TextShape(SRC_WORDS, TGT_WORDS)

PICTURES = ImageShape(6, 3, 5)


def together(**registries):
    """Settings in which each choice of each registry stands once, as few as that takes."""
    n = max(map(len, registries.values()))
    chosen = {name: itertools.cycle(registry) for name, registry in registries.items()}
    return [{name: next(choices) for name, choices in chosen.items()} for _ in range(n)]


ONE_LAYER = {  # a second one is traced like the first, and takes as long
    "encoder-decoder": {"n_encoder_layers": 1, "n_decoder_layers": 1},
    "decoder-only": {"n_layers": 1},
    "encoder-only": {"n_layers": 1},
    "recurrent": {"n_layers": 1},
}

TEXT_CASES = [
    (family, settings | more)
    for settings, family, more in zip(
        together(
            position=POSITIONS_OF_WORDS,
            norm=NORMS,
            activation=ACTIVATIONS,
            mistakes=("", "no-output-projection", "sliced-heads"),
        ),
        itertools.cycle(["encoder-decoder", "decoder-only", "encoder-only", "decoder-only"]),
        itertools.cycle([{"norm_first": False, "bias": False}, {"window": 2}, {}]),
        strict=False,
    )
]

TEXT_CASES += [
    ("encoder-decoder", {"mistakes": "no-causal-mask,no-residuals,no-scale"}),
    ("decoder-only", {"mistakes": "no-causal-mask,residual-from-normed,scaled-by-d-model"}),
]

RECURRENT_CASES = [
    ("recurrent", settings) for settings in together(attention=ALIGNMENT_SCORES, cell=CELLS)
]


@pytest.mark.core(3)
@pytest.mark.parametrize(("family", "settings"), [*TEXT_CASES, *RECURRENT_CASES])
def test_a_text_model_is_written_with_every_variant(family, settings) -> None:
    model = text_model(family, **settings, **ONE_LAYER[family])
    file = export.exported(model, TEXTS, src_len=S, tgt_len=T)
    assert file.worst < 1e-4
    assert len(set(file.checked)) == 3
    takes_any = family != "recurrent"
    assert all((sizes[1] is None) == takes_any for sizes in file.inputs.values())
    if family == "encoder-decoder":
        named = session(file.content)
        shapes = {one.name: one.shape for one in named.get_inputs()}
        assert shapes == {"src": ["batch", "source"], "tgt_in": ["batch", "target"]}
        assert named.get_outputs()[0].shape[:2] == ["batch", "target"]


@pytest.mark.wide
def test_experts_are_written_for_any_number_of_tokens() -> None:
    model = text_model("encoder-decoder", n_experts=3, **ONE_LAYER["encoder-decoder"])
    file = export.exported(model, TEXTS, src_len=S, tgt_len=T)
    assert file.worst < 1e-4
    assert all(sizes[1] is None for sizes in file.inputs.values())


@pytest.mark.core(1)
@pytest.mark.parametrize(
    "settings", together(pooling=POOLINGS, stem=STEMS, position=["sinusoidal-2d", "rotary"])
)
def test_a_vision_transformer_is_written_with_every_variant(settings) -> None:
    file = export.exported(vit_model(**settings), PICTURES, src_len=1, tgt_len=1)
    assert file.inputs == {"images": (None, 3, 6, 6)}


@pytest.mark.wide
def test_a_captioner_is_written() -> None:
    model = captioner_model(text_position="learned")
    file = export.exported(model, CAPTION_SHAPE, src_len=1, tgt_len=T + 2)
    assert set(file.inputs) == {"images", "tgt_in"}


def test_a_language_model_reads_a_text_and_stays_as_it_is() -> None:
    torch.manual_seed(3)
    shape = TextShape(TGT_WORDS, TGT_WORDS, one_vocabulary=True, has_source=False)
    model = build_text(text_config("decoder-only", position="learned", n_layers=1), shape)
    file = export.exported(model, shape, src_len=1, tgt_len=T)
    assert file.inputs == {"tgt_in": (None, None)}
    _src, tgt = text_batch()
    with torch.no_grad():
        said = model.eval()(tgt[:, :0], tgt)
    (answer,) = session(file.content).run(None, {"tgt_in": tgt.numpy()})
    np.testing.assert_allclose(answer, said.numpy(), atol=1e-4)
    model = text_model("decoder-only", position="rotary", dropout=0.1, n_layers=1).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    export.exported(model, TEXTS, src_len=S, tgt_len=T)
    assert model.training
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    model(*text_batch()).logsumexp(-1).sum().backward()  # no tensor of the tracing is left in it


def session(content: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


class Answers:
    """A runtime that answers another thing than the model did."""

    def __init__(self, real) -> None:
        self.real = real

    def get_inputs(self):
        return self.real.get_inputs()

    def run(self, names, inputs):
        return [self.real.run(names, inputs)[0] + 0.01]


def test_a_file_that_answers_otherwise_is_not_handed_out(monkeypatch) -> None:
    real = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *args: Answers(real(*args)))
    with pytest.raises(StudentError, match="differ by up to"):
        export.exported(vit_model(), PICTURES, src_len=1, tgt_len=1)


def test_a_model_that_cannot_be_traced_is_a_sentence(monkeypatch) -> None:
    def fails(*args, **settings):
        raise RuntimeError("there is no such operation\nand much more")

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(StudentError, match=r"as ONNX: there is no such oper\w+$"):
        export.exported(vit_model(), PICTURES, src_len=1, tgt_len=1)


def test_the_file_of_a_run_says_what_its_numbers_mean(tmp_path) -> None:
    chosen = experiment("encoder-decoder", "copy", model={"d_model": 12, "n_heads": 3})
    run = RunStore(tmp_path).create(chosen, name="Copies", state="finished")
    checkpoints.save(build(chosen), run.folder / "checkpoints" / "last")
    file = export.onnx_file(run)
    facts = session(file.content).get_modelmeta().custom_metadata_map
    assert facts["name"] == "Copies"
    assert json.loads(facts["experiment"])["task"]["name"] == "copy"
    tokens = json.loads(facts["tgt_tokens"])
    assert tuple(tokens[:4]) == SPECIALS
    src = np.array([[tokens.index("c"), tokens.index("a")]])
    written, model = [1], session(file.content)
    while len(written) < 3:
        (logits,) = model.run(None, {"src": src, "tgt_in": np.array([written])})
        written.append(int(logits[0, -1].argmax()))
    answer = look_at_text(run, "c a").answer
    assert [tokens[n] for n in written[1:]][: len(answer)] == list(answer[:2])


def test_a_run_without_weights_says_so(tmp_path) -> None:
    run = RunStore(tmp_path).create(experiment("vit", "mnist-5000"), state="finished")
    with pytest.raises(ValueError, match="no checkpoint"):
        export.onnx_file(run)


def test_the_command_line_writes_the_file(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    chosen = experiment("encoder-only", "sentiment", model={"d_model": 12, "n_heads": 3})
    run = RunStore().create(chosen, name="A judge", state="finished")
    checkpoints.save(build(chosen), run.folder / "checkpoints" / "last")
    assert main(["export", run.id, "--onnx", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.onnx")
    assert capsys.readouterr().out.strip() == str(path)
    assert path.name.startswith("a-judge-")
    (asked,) = session(path.read_bytes()).get_inputs()
    assert asked.name == "src"


@pytest.fixture(scope="module")
def run():
    return RunStore().get("recorded-korean")


@pytest.fixture(scope="module")
def read(run, tmp_path_factory):
    folder = unpacked(tensorboard.bundle(run), tmp_path_factory.mktemp("logs"))
    (one,) = folder.iterdir()
    return EventAccumulator(str(one), {"scalars": 0, "images": 0, "tensors": 0}).Reload()


@pytest.mark.parametrize(
    ("tag", "split", "column"),
    [
        ("loss/train", "steps", "loss"),
        ("accuracy/validation", "validation", "accuracy"),
        ("whole sequences/validation", "validation", "sequence_accuracy"),
        ("loss/test", "test", "loss"),
        ("learning rate/train", "steps", "learning_rate"),
    ],
)
def test_scalars_are_the_curves(run, read, tag, split, column):
    series = getattr(run.curves(), split)
    scalars = read.Scalars(tag)
    assert [one.step for one in scalars] == series["step"].tolist()
    np.testing.assert_allclose([one.value for one in scalars], series[column], rtol=1e-6)


def test_settings_are_hyperparameters_heads_pictures_and_times_the_runs(run, read):
    times = [one.wall_time for one in read.Scalars("loss/train")]
    began = datetime.fromisoformat(run.meta.created).timestamp()
    assert times == sorted(times)
    assert times[0] >= began
    assert times[-1] == pytest.approx(began + run.status.seconds, abs=0.01)
    content = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    told = HParamsPluginData.FromString(content).session_start_info.hparams
    assert told["model.d_model"].number_value == run.experiment.model.d_model
    assert told["seed"].number_value == run.experiment.seed
    assert told["task.name"].string_value == "english-korean"
    tags = [tag for tag in read.Tags()["images"] if tag.startswith("attention/")]
    assert len(tags) == 3
    pictures = read.Images(tags[0])
    steps = [one.step for one in pictures]
    assert len(steps) <= tensorboard.MAX_PICTURES + 1
    assert (steps[0], steps[-1]) == (run.snapshot_steps()[0], run.snapshot_steps()[-1])
    picture = Image.open(io.BytesIO(pictures[-1].encoded_image_string))
    assert picture.width > picture.height  # heads stand side by side


def test_a_run_of_no_steps_has_event_files_all_the_same(tmp_path):
    run = untrained(RunStore(tmp_path / "runs", recorded=None), tiny())
    name, readme = members(tensorboard.bundle(run))
    assert "events.out.tfevents" in name
    assert name.split("/")[0] == readme.split("/")[0]
    assert name.split("/")[0] in tensorboard.file_name(run)


def test_wall_times_are_what_the_run_wrote_down_and_it_is_said_where_they_are_reckoned(tmp_path):
    run = untrained(RunStore(tmp_path / "runs", recorded=None), tiny())
    steps = ((1, 3.0), (2, 11.0), (3, 12.0))
    began = datetime.fromisoformat(run.meta.created).timestamp()

    def written(with_seconds):
        lines = [{"event": "started", "step": 0}]
        for step, seconds in steps:
            line = {"event": "step", "step": step, "loss": 1.0, "examples_per_second": 50.0}
            lines.append(line | ({"seconds": seconds} if with_seconds else {}))
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (run.folder / "events.jsonl").write_text(text)
        folder = unpacked(tensorboard.bundle(run), tmp_path / str(with_seconds))
        (one,) = folder.iterdir()
        read = EventAccumulator(str(one), {"tensors": 0}).Reload()
        (said,) = read.Tensors("wall times/text_summary")[0].tensor_proto.string_val
        assert said.decode() == (one / "README.txt").read_text().strip()
        return [event.wall_time - began for event in read.Scalars("loss/train")], said.decode()

    times, said = written(True)
    assert times == pytest.approx([3.0, 11.0, 12.0], abs=0.01)
    assert "as it wrote them down" in said
    times, said = written(False)
    assert np.diff(times).tolist() == pytest.approx([tiny().training.batch_size / 50] * 2, abs=0.01)
    assert said.startswith("Wall times are reckoned, not measured")
