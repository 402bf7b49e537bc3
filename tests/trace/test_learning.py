"""One training step, learned by a copy as by the loop, and nn.Linear beside F.linear."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from tests.training.test_loop import experiment
from tfm_core.choices.config import MODEL_CONFIGS, TEXT_TASKS, tasks_for
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.trace.backward import LOSS, fold, graph_of, groups_of, with_gradients
from tfm_core.trace.learning import (
    answers,
    batch,
    clip_scale,
    forward,
    gradients,
    losses_at,
    one_answer,
    rows,
    scheduled_rate,
    start,
    take_step,
)
from tfm_core.trace.mistakes import (
    argmax_before_loss,
    argmax_made_to_require_grad,
    forgotten_eval,
    forgotten_zero_grad,
    softmax_before_loss,
)
from tfm_core.trace.trace import trace
from tfm_core.trace.update import one_layer, one_weight, singular_values, two_ways
from tfm_core.training import checkpoints
from tfm_core.training.events import Step
from tfm_core.training.loop import build, train

FAMILIES = list(MODEL_CONFIGS)
TAKERS = {task: [one for one in FAMILIES if task in tasks_for(one)] for task in TEXT_TASKS}
PAIRS = [  # each task once, with one family after the other
    (takers[number % len(takers)], task) for number, (task, takers) in enumerate(TAKERS.items())
]


def chosen(family="encoder-decoder", /, **sections):
    task = next(iter(tasks_for(family)))
    sections["model"] = {"dropout": 0.1, **sections.get("model", {})}
    return experiment(family, task, **sections)


@pytest.fixture(scope="module", params=FAMILIES)
def fresh(request):
    return start(chosen(request.param))


def weights(trainer):
    return {name: one.detach().clone() for name, one in trainer.model.named_parameters()}


def worst(first, second):
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def test_steps_on_copies_are_those_of_the_loop_and_leave_their_origin(fresh):
    losses = [event.loss for event in train(build(fresh.experiment)) if isinstance(event, Step)]
    trainer, found = fresh, []
    for _ in losses:
        taken = take_step(trainer, scheduled_rate(trainer))
        trainer = taken.after
        found.append(taken.loss_before)
    assert found == pytest.approx(losses, abs=1e-5)
    before = weights(fresh)
    taken = take_step(fresh, 0.1)
    after = taken.after
    assert worst(before, weights(fresh)) == 0
    assert not fresh.optimizer.state
    assert (fresh.step, after.step) == (0, 1)
    assert worst(before, weights(after)) > 0
    found = two_ways(take_step(fresh, 0.01))
    assert found["other"] == pytest.approx(found["one"], abs=1e-6)
    assert found["gradient"] < 1e-6
    assert found["weight"] < 1e-4  # an almost zero gradient still makes a step of lr


def test_going_on_from_a_checkpoint_has_its_batch_and_its_memory(tmp_path):
    made = build(chosen())
    events = train(made)
    while made.step < 2:
        next(events)
    checkpoints.save(made, tmp_path)
    trainer = start(made.experiment, tmp_path)
    assert torch.equal(rows(trainer), made.batch_indices(3))
    taken = take_step(trainer, scheduled_rate(trainer))
    assert all(float(taken.memory(name)["step"]) == 2 for name in taken.gradients)
    loss = next(event.loss for event in events if isinstance(event, Step) and event.step == 3)
    assert taken.loss_before == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMISERS)
@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
def test_the_arithmetic_by_hand_is_the_optimisers(optimizer, clip_norm):
    settings = {"optimizer": optimizer, "weight_decay": 0.3, "clip_norm": clip_norm}
    trainer = start(chosen(training=settings))
    for _ in range(3):  # from the second step on there is a memory
        taken = take_step(trainer, 0.02)
        for name, gradient in taken.gradients.items():
            index = tuple(int(i) for i in (gradient == gradient.max()).nonzero()[0])
            lines, by_hand, real = one_weight(taken, name, index)
            assert by_hand == pytest.approx(real, rel=1e-4, abs=1e-6)
            assert lines[0].value == float(weights(trainer)[name][index])
        trainer = taken.after


@pytest.mark.parametrize("mistakes", ["", "sliced-heads"])
def test_singular_values_of_muon_are_those_of_its_update(mistakes):
    """Of the matrix in which the weight stands; AdamW's parameters have none."""
    trainer = start(chosen(model={"mistakes": mistakes}, training={"optimizer": "muon"}))
    taken = take_step(trainer, 0.02)
    name = "decoder.layers.0.self_attention.in_projection"
    name += ".heads" if mistakes else ".weight"
    index = (1, 1, 3, 5) if mistakes else (3, 5)
    found = singular_values(taken, name, index)
    decay = 1 - 0.02 * trainer.experiment.training.weight_decay
    moved = (decay * weights(trainer)[name] - weights(taken.after)[name])[index[:-2]]
    scale = 0.02 * 0.2 * max(moved.shape) ** 0.5
    real = torch.linalg.svdvals(moved.double() / scale)
    torch.testing.assert_close(found[-1], real, rtol=0.01, atol=0.01)
    assert float(found[0].norm()) == pytest.approx(1)
    assert singular_values(taken, "output.weight", (0, 0)) is None


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_both_codes_take_the_step_of_every_kind_of_optimiser(optimizer):
    trainer = start(chosen("vit", training={"optimizer": optimizer}))
    assert two_ways(take_step(trainer, 0.01))["weight"] < 1e-4


def test_both_codes_leave_the_weights_that_two_modules_share():
    trainer = start(chosen(model={"mistakes": "shared-norm"}))
    _loss, before = gradients(trainer)
    two_ways(take_step(trainer, 0.01))
    _loss, after = gradients(trainer)
    assert worst(before, after) == 0


def test_clipping_is_pytorchs_and_pictures_words_and_windows_are_named():
    trainer = start(chosen())
    _loss, found = gradients(trainer)
    norm, scale = clip_scale(found, 0.01)
    for name, one in trainer.model.named_parameters():
        one.grad = found[name].clone()
    real = torch.nn.utils.clip_grad_norm_(trainer.parameters, 0.01)
    assert norm == pytest.approx(float(real), rel=1e-5)
    for name, one in trainer.model.named_parameters():
        torch.testing.assert_close(one.grad, found[name] * scale, rtol=1e-5, atol=1e-9)
    assert clip_scale(found, 0.0)[1] == 1.0
    trainer = start(chosen("captioner"))
    found, _loss = batch(trainer)
    words = trainer.data.vocabulary
    assert len(found["picture"]) == len(found["target"])
    assert all(found["target"])
    first = trainer.data.train.captions[found["number"][0]].words
    assert [trainer.data.names[words.encode([word])[0]] for word in first] == list(first)
    trainer = start(experiment("decoder-only", "own-text", task={"context": 7}))
    found, _loss = batch(trainer)
    task = trainer.data.task
    starts = rows(trainer).tolist()
    assert found["target"].tolist() == [task.join_tgt(task.tokens[n : n + 7]) for n in starts]
    assert found["input"].tolist() == [""] * len(starts)
    with pytest.raises(ValueError, match="at most 5,000,000 parameters"):
        start(chosen("encoder-only", model={"d_model": 1024, "n_heads": 4, "n_layers": 4}))


def test_every_example_has_its_loss_minus_the_log_of_its_probability(fresh):
    check_answers(fresh)
    examples, _loss = batch(fresh)
    number = examples["answers"].iloc[-1][-1]
    table, right = one_answer(fresh, number, shown=3)
    call, _owners = answers(fresh)
    target = int(call.targets[number])
    log_p = float(call.given.detach().log_softmax(-1)[number, target])
    assert right["loss"] == pytest.approx(-log_p, abs=1e-5)
    assert len(table) == 3
    (one,) = table[table["class"] == right["target"]].to_dict("records")
    assert right["loss"] == pytest.approx(one["nats"], abs=1e-5)
    assert right["loss"] == pytest.approx(right["log_sum"] - one["logit"], abs=1e-5)
    assert math.exp(-right["loss"]) == pytest.approx(one["chance"], rel=1e-4)


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_answers_belong_to_their_examples_in_every_task(family, task):
    check_answers(start(experiment(family, task)))


def check_answers(trainer):
    call, owners = answers(trainer)
    examples, loss = batch(trainer)
    assert len(rows(trainer)) == len(examples)
    counts = call.targets != call.ignored
    numbers = [number for there in examples["answers"] for number in there]
    assert sorted(numbers) == counts.nonzero().flatten().tolist()
    for example, there in enumerate(examples["answers"]):
        assert set(owners[there].tolist()) <= {example}
    n_answers = examples["answers"].map(len)
    mean = float((examples["loss"] * n_answers).sum() / n_answers.sum())
    assert mean == pytest.approx(loss, abs=1e-5)
    assert loss == pytest.approx(float(forward(trainer)[0].detach()), abs=1e-6)


def test_the_tensors_of_a_trace_have_the_gradients_of_the_step(fresh):
    subject, loss = with_gradients(fresh)
    true_loss, found = gradients(fresh)
    assert float(loss.detach()) == pytest.approx(true_loss, abs=1e-5)
    for path, parameter in subject.model.named_parameters():
        torch.testing.assert_close(parameter.grad, found[path], rtol=1e-3, atol=1e-6)
    steps = trace(subject)
    for step in steps:
        own = [one for one in step.part.parameters if not one.tied_to]
        assert all(found[one.name].shape == one.shape for one in own)
        for one in step.outputs:
            is_shown = one.gradient is not None
            assert (one.name in step.gradient) == is_shown
            assert not is_shown or one.gradient.shape == one.value.shape
    made = {name: one for step in steps for name, one in step.gradient.items()}
    call, owners = answers(fresh)
    counts = (call.targets != call.ignored) & (owners >= 0)
    chances = call.logits.detach().softmax(-1)
    chances[counts.nonzero().flatten(), call.targets[counts]] -= 1
    by_hand = chances[counts] / counts.sum()  # softmax less the truth, over the answers
    assert float(made["logits"].norm()) == pytest.approx(float(by_hand.norm()), rel=1e-3)
    assert all(one.grad is None for one in fresh.model.parameters())


def test_every_tensor_has_its_module_and_folding_keeps_them(fresh):
    graph = tensors, _edges = graph_of(fresh)
    known = own_names(fresh.experiment.model, data_shape(fresh.experiment))
    modules = {own_name(name, known) for name, _ in fresh.model.named_modules()}
    names = {own_name(name, known) for name, _ in fresh.model.named_parameters()}
    for one in tensors:
        assert one.module in modules | {LOSS, "(model)"}
    _loss, found = gradients(fresh)
    ends = {one.parameter: one for one in tensors if one.parameter}
    assert set(ends) <= names
    for path, gradient in found.items():
        name = own_name(path, known)
        if name in ends and ends[name].norm is not None:
            assert ends[name].norm == pytest.approx(float(gradient.norm()), rel=1e-3, abs=1e-6)
        elif name not in ends:
            assert float(gradient.norm()) == 0
    closed, _flows = fold(graph)
    assert sum(map(len, closed.values())) == len(tensors)
    assert len(closed) < len(tensors) / 2
    assert LOSS in closed
    for name in groups_of(graph):
        opened, _flows = fold(graph, name)
        assert sum(map(len, opened.values())) == len(tensors)
        assert name not in opened or name not in closed


def test_rates_and_mistakes_have_their_effects(fresh):
    trainer = start(
        fresh.experiment.replace(model={**fresh.experiment.model.model_dump(), "dropout": 0.0})
    )
    loss, _ = gradients(trainer)
    small, huge = losses_at(trainer, [1e-3, 10.0])
    assert small < loss < huge
    found = argmax_before_loss(fresh)
    assert found["grad_fn"] == "None"
    assert "does not require grad" in found["error"]
    assert 0 <= found["share"] <= 1
    found = argmax_made_to_require_grad(fresh)
    assert found["loss"] > found["answers"] > 1  # ids as logits and as shares: no class's loss
    assert found["all"] == len(list(fresh.model.parameters()))
    assert found["n"] == found["change"] == 0
    found = forgotten_zero_grad(fresh)
    assert found["twice"] == pytest.approx(2 * found["once"], rel=1e-4)
    assert found["d"] < 1e-5
    found = softmax_before_loss(fresh)
    assert found["wrong"] >= found["floor"]
    right = torch.eye(found["n"])[:1]  # all probability on the right class
    loss = float(F.cross_entropy(right, torch.tensor([0])))
    assert loss == pytest.approx(found["floor"], abs=1e-5)
    found = forgotten_eval(fresh)
    assert found["noisy"] > found["quiet"] == 0
    assert not found["is_borrowed"]


def test_both_scripts_print_the_same_in_a_process_of_their_own():
    (_title, modules, first), (_title, functions, second) = one_layer()
    for call in ("nn.Linear(4, 3)", "nn.ReLU()"):
        assert call in modules
    assert "F.relu(F.linear(x, weight, bias))" in functions
    assert first.splitlines()[-3:] == ["weight (3, 4)", "bias (3,)", "[]"]
    said = [line.partition(": ")[2] for line in second.splitlines()[-3:]]
    assert said == ["True", "True", "True"]
    numbers = [text.partition("grad_fn")[0] for text in (first, second)]
    assert numbers[0] == numbers[1]
    assert "tensor([[" in numbers[0]
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{modules}\n{functions}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{first}\n{second}\n"
    one_layer.cache_clear()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    one_layer()
    assert torch.equal(torch.rand(3), expected)
