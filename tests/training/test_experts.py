"""Experts in training: balance is learned, told by itself, and no part of the reported loss."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.training.test_loop import experiment
from tfm_core.choices.config import ConfigError
from tfm_core.layers.experts import MixtureOfExperts
from tfm_core.probe import snapshot
from tfm_core.probe.form import form_of
from tfm_core.probe.types import Probe
from tfm_core.runs.curves import Curves
from tfm_core.runs.record import snapshots
from tfm_core.training.events import Step, to_record
from tfm_core.training.loop import build, train


def with_experts(weight=0.5, **training):
    model = {"n_experts": 5, "top_k": 2, "balance_weight": weight}
    return experiment("encoder-decoder", "copy", model=model, training=training)


def first_metrics(chosen):
    trainer = build(chosen)
    batch = trainer.batch(1)
    return trainer, batch, trainer.objective.learn(trainer.model, batch)


def test_balance_is_told_of_as_many_experts_as_there_may_be():
    trainer, batch, metrics = first_metrics(with_experts(0.5))
    alone = trainer.objective.learn_from(trainer.model, batch)
    torch.testing.assert_close(metrics.reported, alone.loss)
    n_layers = sum(isinstance(one, MixtureOfExperts) for one in trainer.model.modules())
    added = 0.5 * n_layers * metrics.balance
    torch.testing.assert_close(metrics.loss.detach(), (alone.loss + added).detach())
    assert 1 <= float(metrics.balance) < 5
    trainer, batch, metrics = first_metrics(with_experts(0.0))
    alone = trainer.objective.learn_from(trainer.model, batch)
    assert metrics.balance is not None
    parameters = list(trainer.model.parameters())
    both = [torch.autograd.grad(one.loss, parameters) for one in (metrics, alone)]
    torch.testing.assert_close(*both)
    last = {}
    for weight in (0.0, 1.0):
        steps = [e for e in train(build(with_experts(weight, steps=60))) if isinstance(e, Step)]
        last[weight] = np.mean([event.balance for event in steps[-10:]])
    assert 1 <= last[1.0] < last[0.0]
    for chosen, is_there in ((with_experts(), True), (experiment(), False)):
        curves = Curves()
        curves.extend([to_record(event) for event in train(build(chosen))])
        assert np.isfinite(curves.steps["balance"]).all() == is_there
        assert not np.isnan(curves.steps["loss"]).any()
    with pytest.raises(ConfigError, match="top_k 4 is more than the 3 experts") as why:
        experiment(model={"n_experts": 3, "top_k": 4})
    assert why.value.problems[0].field == "model.top_k"
    experiment(model={"n_experts": 0, "top_k": 4})  # there are none to choose from
    plain, one = (build(experiment(model={"n_experts": n})) for n in (0, 1))
    assert plain.model.state_dict().keys() == one.model.state_dict().keys()


def test_a_snapshot_says_where_the_tokens_went_and_is_read_again(tmp_path):
    trainer = build(with_experts())
    probe = snapshot.probe_of(trainer)
    taken = snapshot.take(trainer, 3)
    snapshots.write(tmp_path, taken)
    form = form_of(trainer.experiment, Probe(probe["kind"], probe["items"], n_attended=3))
    read = snapshots.read(snapshots.snapshot_path(tmp_path, 0), form)
    names = {name for name, one in trainer.model.named_modules()
             if isinstance(one, MixtureOfExperts)}  # fmt: skip
    assert read.routing.keys() == names
    seen = {}
    for name in names:
        module = trainer.model.get_submodule(name)
        module.router.register_forward_hook(
            lambda _m, _x, logits, name=name: seen.update({name: logits})
        )
    data = trainer.data.validation
    with torch.no_grad():
        trainer.model.eval()(data.src[:3], snapshot.decoder_input(data.tgt[:3, :-1]))
    for name, gates in read.routing.items():
        best, which = seen[name].topk(2)
        expected = torch.zeros_like(seen[name]).scatter(-1, which, F.softmax(best, -1))
        np.testing.assert_allclose(gates, expected.numpy(), atol=2e-3)
        assert ((gates > 0).sum(-1) == 2).all()
