"""Every kind of task has all its parts; a new one is learned with no other file touched."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.config import (
    TASK_CONFIGS,
    EncoderOnlyConfig,
    Experiment,
    ImageTaskConfig,
    PictureTaskConfig,
    SequenceTaskConfig,
    TrainingConfig,
)
from tfm_core.config.shape import TextShape
from tfm_core.data.image_data import ImageData
from tfm_core.data.load import data_as, load
from tfm_core.data.moving import DeviceRecord
from tfm_core.inspect.attention.example import cut, example_of
from tfm_core.probe.capture import capture
from tfm_core.probe.snapshot import probe_of, take
from tfm_core.probe.types import Probe, Snapshot
from tfm_core.training.events import Finished, Measured, SnapshotDue, Step
from tfm_core.training.loop import build, train
from tfm_core.training.objectives import Batch, Objective, StepMetrics
from tfm_core.variants.record import UnknownVariant, Variant
from tfm_core.variants.tasks import TASK_KINDS, TaskKind

pytestmark = pytest.mark.quick

WORDS = {part.name for part in fields(Variant)}
PARTS = [part.name for part in fields(TaskKind) if part.name not in WORDS]


def test_every_kind_has_settings_of_its_own_and_others_are_refused() -> None:
    assert list(TASK_CONFIGS) == list(TASK_KINDS)
    for name, config in TASK_CONFIGS.items():
        assert TASK_KINDS[name].config() is config
    for part in ("config", "load"):
        assert len({getattr(kind, part)() for kind in TASK_KINDS.values()}) == len(TASK_KINDS), part
    made_of_others = ("own", "pretrained", "tuned", "look", "foreign")
    others = [kind for kind in TASK_KINDS.values() if not kind.name.startswith(made_of_others)]
    for part in ("shape", "objective", "probe", "snapshot"):
        assert len({getattr(kind, part)() for kind in others}) == len(others), part
    with pytest.raises(UnknownVariant, match=r"There is no kind of task named 'poem'"):
        TASK_KINDS["poem"]
    task = TASK_CONFIGS["text"](name="copy", size=3, n_train=8, n_validation=8, n_test=8)
    with pytest.raises(ValueError, match="needs ImageData, not TextData"):
        data_as(load(task, seed=0), ImageData)
    with pytest.raises(ValueError, match="uses up the 4500"):
        ImageTaskConfig(name="mnist-5000", n_validation=4500)


@pytest.mark.parametrize("name", TASK_KINDS)
def test_every_part_of_a_kind_is_there(name: str) -> None:
    kind = TASK_KINDS[name]
    for part in PARTS:
        if getattr(kind, part) is not None:
            assert callable(getattr(kind, part)()), part
    assert issubclass(TASK_CONFIGS[name], SequenceTaskConfig | PictureTaskConfig)


# A kind of its own: a number is predicted, the share of ones among seven bits.


@dataclass(frozen=True)
class ShareFacts:
    label: str = "Share of ones"
    help: str = "Which share of the bits is 1."
    families: tuple[str, ...] = ("encoder-only",)
    answer: str = "label"


class ShareTaskConfig(SequenceTaskConfig):
    tasks: ClassVar[dict[str, ShareFacts]] = {"share": ShareFacts()}
    kind: Literal["share"] = "share"
    name: Literal["share"] = "share"

    @property
    def facts(self) -> ShareFacts:
        return ShareFacts()

    @property
    def max_src_len(self) -> int:
        return 7

    @property
    def max_tgt_len(self) -> int:
        return 1

    @property
    def n_answers(self) -> int:
        return 1


@dataclass(frozen=True)
class Bits:
    bits: Tensor  # (N, 7), 0 or 1

    def __len__(self) -> int:
        return len(self.bits)


@dataclass(frozen=True)
class ShareData(DeviceRecord):
    train: Bits
    validation: Bits
    test: Bits


FIRST_BIT = 2  # behind <pad> and <bos>


def load_share(task: ShareTaskConfig, *, seed: int, progress: object = None) -> ShareData:
    generator = torch.Generator().manual_seed(seed)
    return ShareData(*(Bits(torch.randint(2, (n, 7), generator=generator)) for n in (64, 11, 13)))


def share_shape(experiment: Experiment) -> TextShape:
    return TextShape(FIRST_BIT + 2, 1, head="mean", n_labels=1)


class ShareObjective(Objective):
    """Mean squared error of one number; a prediction within 0.1 counts as correct."""

    n_classes = 2

    def prepare(self) -> None:
        self.n_train = len(self.data.train)

    def _metrics(self, model: nn.Module, bits: Tensor) -> StepMetrics:
        predicted, share = predictions(model, bits), bits.float().mean(1)
        n_correct = ((predicted.detach() - share).abs() < 0.1).sum()
        return StepMetrics(F.mse_loss(predicted, share), n_correct, len(bits), None, len(bits))

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        return Batch(indices, (), (indices,))

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        return self._metrics(model, self.data.train.bits[batch.rows])

    def loss_lower_bound(self) -> float:
        return 0.0

    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        found = self._metrics(model, getattr(self.data, split).bits)
        return float(found.loss), float(found.n_correct) / found.n_examples, None


def predictions(model: nn.Module, bits: Tensor) -> Tensor:
    src = bits + FIRST_BIT
    out: Tensor = model(src, src[:, :1])[:, 0, 0].float()
    return out


def share_probe(trainer: Any) -> dict[str, Any]:
    rows = trainer.data.validation.bits[:3].tolist()
    return {"kind": "share", "items": [{"src": list(map(str, row)), "tgt": ["?"]} for row in rows]}


def share_snapshot(trainer: Any, n_attended: int | None) -> Snapshot:
    with capture(trainer.model, only={"weights", "mask"}) as cache:
        predictions(trainer.model, trainer.data.validation.bits[:3])
    maps = {name: value.half().numpy() for name, value in cache.of("weights").items()}
    return Snapshot(step=trainer.step, attention=maps, masks=cache.masks())


def share_inputs(experiment: Experiment, item: dict[str, Any], picture: object) -> tuple[Any, ...]:
    src = torch.tensor([[int(bit) + FIRST_BIT for bit in item["src"]]])
    return src, src[:, :1]


SHARE = TaskKind(
    name="share",
    label="Share",
    help="Predict a number.",
    source="This test",
    config=lambda: ShareTaskConfig,
    load=lambda: load_share,
    shape=lambda: share_shape,
    objective=lambda: ShareObjective,
    probe=lambda: share_probe,
    snapshot=lambda: share_snapshot,
    inputs=lambda: share_inputs,
    batches=lambda: share_inputs,
    errors=None,
    own_text=None,
    batch_rows=lambda: share_probe,
    class_name=lambda: share_probe,
    walk=lambda: share_probe,
    carried=lambda: share_probe,
)


class ShareExperiment(Experiment):
    task: ShareTaskConfig = ShareTaskConfig()


@pytest.fixture
def share(monkeypatch: pytest.MonkeyPatch) -> ShareExperiment:
    monkeypatch.setitem(TASK_KINDS._variants, "share", SHARE)
    return ShareExperiment(
        model=EncoderOnlyConfig(d_model=22, n_heads=2, d_ff=33, n_layers=1, dropout=0.0),
        training=TrainingConfig(
            steps=60, batch_size=16, learning_rate=0.01, warmup=0.1, validate_every=20, snapshots=3
        ),
    )


def test_a_new_kind_is_learned_by_the_same_loop(share: ShareExperiment) -> None:
    trainer = build(share)
    assert isinstance(trainer.data, ShareData)
    events = list(train(trainer))
    losses = [event.loss for event in events if isinstance(event, Step)]
    assert len(losses) == 60
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])
    assert {event.split for event in events if isinstance(event, Measured)} == {
        "validation",
        "test",
    }
    assert isinstance(events[-1], Finished)


def test_a_new_kind_is_looked_into_while_it_learns(share: ShareExperiment) -> None:
    trainer = build(share)
    probe = Probe(**probe_of(trainer))
    snapshots = [take(trainer) for event in train(trainer) if isinstance(event, SnapshotDue)]
    assert [snapshot.step for snapshot in snapshots][:: len(snapshots) - 1] == [0, 60]
    example = example_of(share, probe, snapshots[-1], 1)
    (weights,) = example.attention.values()
    assert weights.shape == (2, 7, 7)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=2e-3)
    assert cut(share, example.item, example.attention).keys() == example.attention.keys()
