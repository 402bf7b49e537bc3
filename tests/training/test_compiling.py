"""torch.compile: the same training but for rounding, saved and resumed as ever, or a reason."""

import pytest
import torch
from safetensors import safe_open

from tests.nightly import IS_NIGHTLY
from tests.training.far_device import DEVICE
from tests.training.test_language import language
from tests.training.test_loop import EXPERIMENTS, IDS, experiment
from tfm_core.training import checkpoints, compiling
from tfm_core.training.compiling import why_no_compiler
from tfm_core.training.events import Compiled, Measured, Started, Step
from tfm_core.training.loop import build, train

CHOSEN = dict(zip(IDS, EXPERIMENTS, strict=True)) | {
    "grammar": language("grammar"),
    "text": language(),
    "averaged, forgetful": experiment(training={"checkpointing": True, "ema_decay": 0.9}),
    "bf16": experiment(training={"precision": "bf16"}),
}
GENERATED = ("encoder-decoder", "encoder-only", "decoder-only", "vit", "captioner")
RECURRENT = ("additive", "luong")
UNCOMPILED = (*RECURRENT, "experts")
pytestmark = [  # what PyTorch says of its own parts while it traces
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def with_settings(chosen, **training):
    model = chosen.model.replace(dropout=0.0)  # which draws other numbers when compiled
    training = chosen.training.replace(steps=4, **training)
    return chosen.replace(model=model.model_dump(), training=training.model_dump())


@pytest.fixture
def tracing(monkeypatch):
    """Everything but the generation of code, which takes long and a C++ compiler."""
    monkeypatch.setattr(compiling, "BACKEND", "aot_eager")
    monkeypatch.setattr(compiling, "why_no_compiler", lambda _device: None)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def curve(events):
    steps = [(e.loss, e.accuracy, e.grad_norm) for e in events if isinstance(e, Step)]
    return steps, [(e.loss, e.accuracy) for e in events if isinstance(e, Measured)]


def same_curve(found, expected, rtol=1e-4):
    for some, others in zip(curve(found), curve(expected), strict=True):
        torch.testing.assert_close(torch.tensor(some), torch.tensor(others), rtol=rtol, atol=1e-5)


@pytest.mark.core(2)
@pytest.mark.parametrize("name", [name for name in CHOSEN if name not in UNCOMPILED])
def test_a_compiled_training_is_the_same_but_for_rounding(name, tracing):
    expected = list(train(build(with_settings(CHOSEN[name]))))
    trainer = build(with_settings(CHOSEN[name], compile=True))
    found = list(train(trainer))
    assert isinstance(found[0], Started)
    assert isinstance(found[1], Compiled)
    assert found[1].reason is None
    assert found[1].seconds > 0
    assert trainer.compiled is not None
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1  # one size, and no break
    same_curve(found, expected, rtol=0.02 if name == "bf16" else 1e-4)


def test_a_training_goes_on_compiled_and_back(tracing, tmp_path):
    settings = [with_settings(CHOSEN["encoder-decoder"], compile=c) for c in (False, True)]
    expected = [event for event in train(build(settings[0])) if isinstance(event, Step)]
    found = []
    for turn in range(4):
        trainer = build(settings[(turn + 1) % 2])
        if turn:
            checkpoints.load(trainer, tmp_path)
        found.append(next(event for event in train(trainer) if isinstance(event, Step)))
        assert (trainer.compiled is None) == (turn % 2 == 1)
        checkpoints.save(trainer, tmp_path)
        with safe_open(tmp_path / checkpoints.FILE, framework="pt") as file:
            assert not [name for name in file.keys() if "_orig_mod" in name]  # noqa: SIM118
    assert [event.step for event in found] == [1, 2, 3, 4]
    same_curve(found, expected)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_code_learns_the_same(name):
    if why_no_compiler("cpu") is not None:
        pytest.skip(why_no_compiler("cpu"))
    if not IS_NIGHTLY:
        pytest.skip("the code of a model takes minutes to generate: TFM_NIGHTLY=1")
    torch._dynamo.reset()
    expected = list(train(build(with_settings(CHOSEN[name]))))
    found = list(train(build(with_settings(CHOSEN[name], compile=True))))
    assert found[1].reason is None
    same_curve(found, expected)


def reason_of(trainer):
    """Return why a training is not compiled; it goes on as one that was not asked to be."""
    events = list(train(trainer))
    expected = list(train(build(with_settings(CHOSEN["label"]))))
    assert curve(events) == curve(expected)  # to the last bit
    assert events[1].seconds is None
    return events[1].reason


def test_without_a_compiler_it_trains_as_it_is(monkeypatch):
    monkeypatch.setenv("CXX", "no-compiler-of-this-name")
    reason = reason_of(build(with_settings(CHOSEN["label"], compile=True)))
    assert reason.startswith("torch.compile is off: ")


def test_what_cannot_be_compiled_trains_as_it_is(monkeypatch, tracing):
    def refuses(_graph, _inputs):
        raise NotImplementedError("no such kernel\nand much more")

    monkeypatch.setattr(compiling, "BACKEND", refuses)
    trainer = build(with_settings(CHOSEN["label"], compile=True))
    reason = reason_of(trainer)
    assert "it failed on cpu (" in reason
    assert "no such kernel" in reason
    assert "\n" not in reason
    assert trainer.compiled is None


def test_memory_that_is_not_enough_for_the_compiled_model_ends_the_training(monkeypatch, tracing):
    def runs_out(_graph, _inputs):
        def run(*_inputs):
            raise torch.OutOfMemoryError("CUDA out of memory")

        return run

    monkeypatch.setattr(compiling, "BACKEND", runs_out)
    with pytest.raises(torch.OutOfMemoryError):
        list(train(build(with_settings(CHOSEN["label"], compile=True))))


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_networks_are_told_why_not(name):
    trainer = build(with_settings(CHOSEN[name], compile=True))
    assert "already a single kernel" in compiling.compile_model(trainer).reason


def test_experts_and_other_devices_are_told_why_not():
    trainer = build(with_settings(CHOSEN["experts"], compile=True))
    assert "number of tokens per expert" in compiling.compile_model(trainer).reason
    trainer = build(with_settings(CHOSEN["label"], compile=True))
    trainer.device = DEVICE
    assert "not meta" in compiling.compile_model(trainer).reason
