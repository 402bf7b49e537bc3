"""Rollout and relevance against direct computation, and on cases with known answers."""

import numpy as np
import pytest

from tests.inspect.constructed import small, vit_experiment
from tfm_core.inspect.attention.pictures import rollout, rollout_by_layer, to_patches

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tfm_core.inspect.attention.pictures import EXPLANATIONS, explain_picture, relevance  # noqa: E402
from tfm_core.layers.attention import attention_weights  # noqa: E402
from tfm_core.models.build import ImageShape, build_vit  # noqa: E402
from tfm_core.probe.capture import capture  # noqa: E402

L, H, T = 3, 2, 5
PICTURE = np.random.default_rng(5).integers(0, 256, (1, 28, 28), dtype=np.uint8)


def test_rollout_is_a_product_and_the_classifier_reads_cls_or_the_mean():
    attention = np.random.default_rng(1).dirichlet(np.ones(T), (L, H, T)).astype(np.float32)
    expected = np.eye(T)
    for layer in range(L):
        step = np.zeros((T, T))
        for i in range(T):
            for j in range(T):
                step[i, j] = (sum(attention[layer, :, i, j]) / H + (i == j)) / 2
        expected = (step / step.sum(1, keepdims=True)) @ expected
    np.testing.assert_allclose(rollout(attention), expected, rtol=1e-6)
    np.testing.assert_allclose(rollout_by_layer(attention)[-1], expected, rtol=1e-6)
    with pytest.raises(ValueError, match="at least one attention layer"):
        rollout([])
    with pytest.raises(ValueError, match=r"self-attention of shape \(H, T, T\), not \(1, 2"):
        rollout([np.zeros((1, 2, 3))])
    tokens = np.arange(25.0).reshape(5, 5)
    assert np.array_equal(to_patches(tokens, has_cls=True), [[1, 2], [3, 4]])
    assert np.array_equal(to_patches(tokens[:4, :4], has_cls=False), [[7.5, 8.5], [9.5, 10.5]])
    with pytest.raises(ValueError, match="5 patches do not form a square"):
        to_patches(tokens, has_cls=False)


@pytest.fixture(scope="module", params=["mean", "cls"])
def model(request):
    torch.manual_seed(3)
    return build_vit(vit_experiment(request.param).model, ImageShape(28, 1, 10)).eval()


def direct_relevance(model, images, target):
    """Relevance by a forward pass of its own, written out, that keeps the gradients of its maps."""
    x = model.stem(images)
    if model.cls is not None:
        x = torch.cat([model.cls.expand(len(x), -1, -1), x], 1)
    x = model.positions(x)
    layers = []
    for block in model.encoder.layers:
        attention = block.self_attention
        normed = block.self_attention_norm(x) if block.norm_first else x
        q, k, v = attention.project(normed)
        weights = attention_weights(q, k)
        weights.retain_grad()
        layers.append(weights)
        out = attention.out_projection((weights @ v).transpose(1, 2).reshape(x.shape))
        if block.norm_first:
            x = x + out
            x = x + block.feed_forward(block.feed_forward_norm(x))
        else:
            x = block.self_attention_norm(x + out)
            x = block.feed_forward_norm(x + block.feed_forward(x))
    if model.encoder.final_norm is not None:
        x = model.encoder.final_norm(x)
    model.head(x.mean(1) if model.cls is None else x[:, 0])[0, target].backward()
    found = torch.eye(x.size(1))
    for weights in layers:
        found = found + (weights.grad[0] * weights[0]).relu().mean(0) @ found
    return found.detach()


@pytest.mark.parametrize("target", [0, 7])
def test_relevance_is_that_of_the_formula_by_autograd(model, target):
    images = torch.randn(1, 1, 28, 28, generator=torch.Generator().manual_seed(2))
    expected = direct_relevance(model, images, target)
    model.zero_grad()
    torch.testing.assert_close(relevance(model, (images,), target), expected, rtol=1e-4, atol=1e-6)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_capture_without_gradients_stays_without(model):
    images = torch.zeros(1, 1, 28, 28)
    with capture(model, only={"weights"}) as cache:
        assert not model(images).requires_grad
    assert not any(weights.requires_grad for weights in cache.values())
    with capture(model, only={"weights"}, with_grad=True) as cache:
        model(images)
    assert all(weights.requires_grad for weights in cache.values())


@pytest.fixture(scope="module", params=["mean", "cls"])
def run(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), small(vit_experiment(request.param)), steps=2)[
        0
    ]


def test_every_explanation_has_a_map(run):
    _step, target, probabilities, maps = explain_picture(run, PICTURE)
    assert set(maps) == set(EXPLANATIONS)
    assert target == probabilities.argmax()
    for name, values in maps.items():
        assert values.shape == (4, 4), name
        assert values.min() >= 0


def test_another_class_can_be_explained(run):
    assert explain_picture(run, PICTURE, 3)[1] == 3
    with pytest.raises(ValueError, match="There is no class 10: classes are 0 to 9"):
        explain_picture(run, PICTURE, 10)
