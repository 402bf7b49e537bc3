"""TensorBoard's own reader finds the curves, the settings and the heads of a run."""

import io
import json
from datetime import datetime

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from tests.export.exported import members, unpacked, untrained
from tests.runs.waiting import tiny
from tfm_core.export import tensorboard
from tfm_core.runs.store import RunStore


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
