"""Rollout, relevance and deletion against direct computation, and on cases with known answers."""

import numpy as np
import pytest

from tests.inspect.constructed import small, text_experiment, vit_experiment
from tfm_core.inspect.attention.deletion import (
    MAX_STAGES,
    area,
    deleted,
    deletion,
    most_first,
    stages_of,
)
from tfm_core.inspect.attention.explanations import rollout, rollout_by_layer, to_patches

torch = pytest.importorskip("torch")

from tests.inspect.attention.test_own_example import trained  # noqa: E402
from tfm_core.inspect.attention.explanations import (  # noqa: E402
    EXPLANATIONS,
    explained,
    relevance,
)
from tfm_core.layers.attention import attention_weights  # noqa: E402
from tfm_core.models.build import ImageShape, build_vit  # noqa: E402
from tfm_core.probe.capture import capture  # noqa: E402

L, H, T = 3, 2, 5
PICTURE = np.random.default_rng(5).integers(0, 256, (1, 28, 28), dtype=np.uint8)


def maps():
    return np.random.default_rng(1).dirichlet(np.ones(T), (L, H, T)).astype(np.float32)


def test_rollout_is_the_product_over_layers_of_half_attention_half_identity():
    attention = maps()
    expected = np.eye(T)
    for layer in range(L):
        step = np.zeros((T, T))
        for i in range(T):
            for j in range(T):
                step[i, j] = (sum(attention[layer, :, i, j]) / H + (i == j)) / 2
        expected = (step / step.sum(1, keepdims=True)) @ expected
    np.testing.assert_allclose(rollout(attention), expected, rtol=1e-6)
    np.testing.assert_allclose(rollout_by_layer(attention)[-1], expected, rtol=1e-6)


def test_without_residuals_a_rollout_is_the_product_of_the_mean_maps():
    means = maps().mean(1)
    expected = means[2] @ means[1] @ means[0]
    np.testing.assert_allclose(rollout(maps(), has_residual=False), expected, rtol=1e-6)


def test_rows_of_a_rollout_sum_to_one():
    np.testing.assert_allclose(rollout_by_layer(maps()).sum(-1), 1, rtol=1e-6)


def test_who_looks_at_itself_in_every_layer_keeps_to_itself():
    np.testing.assert_allclose(rollout([np.eye(T)[None]] * L), np.eye(T), atol=1e-12)


def test_a_causal_rollout_sees_no_future():
    causal = np.tril(np.ones((T, T)))
    causal /= causal.sum(-1, keepdims=True)
    assert np.all(np.triu(rollout([causal[None]] * L), 1) == 0)


def test_the_classifier_reads_the_cls_row_or_the_mean():
    tokens = np.arange(25.0).reshape(5, 5)
    assert np.array_equal(to_patches(tokens, has_cls=True), [[1, 2], [3, 4]])
    assert np.array_equal(to_patches(tokens[:4, :4], has_cls=False), [[7.5, 8.5], [9.5, 10.5]])
    with pytest.raises(ValueError, match="5 patches do not form a square"):
        to_patches(tokens, has_cls=False)


def test_rollout_needs_self_attention():
    with pytest.raises(ValueError, match="at least one attention layer"):
        rollout([])
    with pytest.raises(ValueError, match=r"self-attention, \(H, T, T\), not \(1, 2"):
        rollout([np.zeros((1, 2, 3))])


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


def test_relevance_differs_from_class_to_class(model):
    images = torch.randn(1, 1, 28, 28, generator=torch.Generator().manual_seed(2))
    assert not torch.allclose(relevance(model, (images,), 0), relevance(model, (images,), 7))


def test_a_capture_without_gradients_stays_without(model):
    images = torch.zeros(1, 1, 28, 28)
    with capture(model, only={"weights"}) as cache:
        assert not model(images).requires_grad
    assert not any(weights.requires_grad for weights in cache.values())
    with capture(model, only={"weights"}, with_grad=True) as cache:
        model(images)
    assert all(weights.requires_grad for weights in cache.values())


def ink(pictures):
    """A model that needs ink: its probability is the share of ink that is left."""
    return pictures.sum((1, 2, 3)) / 10


def ink_picture():
    """Four patches of 2x2 pixels with 4, 3, 2 and 1 parts of ten of the ink."""
    values = np.array([[4, 1], [2, 3]]) / 4
    return values.repeat(2, 0).repeat(2, 1)[None]


def test_the_curve_falls_from_the_probability_to_nothing_and_never_rises():
    picture = ink_picture()
    true = picture[0, ::2, ::2]
    found = deletion(ink, picture, {"true": true, "reversed": -true})
    np.testing.assert_allclose(found.curves["true"], [1, 0.6, 0.3, 0.1, 0], atol=1e-9)
    np.testing.assert_allclose(found.curves["reversed"], [1, 0.9, 0.7, 0.4, 0], atol=1e-9)
    assert np.all(np.diff(found.random) < 0)
    assert found.areas["true"] < found.random_area < found.areas["reversed"]
    assert found.best == "true"
    np.testing.assert_allclose(found.removed, [0, 0.25, 0.5, 0.75, 1])
    assert np.all(found.lowest <= found.random)
    assert np.all(found.random <= found.highest)


def test_the_same_seed_gives_the_same_random_orders():
    found = [deletion(ink, ink_picture(), {"a": np.eye(2)}, seed=s).random for s in (1, 1, 2)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_patches_go_in_order_and_are_filled():
    picture = np.ones((3, 4, 6))
    gone = deleted(picture, np.array([3, 0, 1, 2]), (2, 2), fill=np.array([7.0, 8.0, 9.0]))
    assert gone.shape == (5, 3, 4, 6)
    assert np.array_equal(gone[0], picture)
    assert np.all(gone[1, 0, 2:, 3:] == 7)
    assert gone[1].sum() == picture.sum() + 6 * (6 + 7 + 8)
    assert np.all(gone[4] == np.array([7, 8, 9])[:, None, None])


def test_area_and_order_are_the_plain_ones():
    assert area(np.array([0, 0.5, 1]), np.array([1, 0.5, 0])) == pytest.approx(0.5)
    assert most_first(np.array([[0.1, 0.9], [0.5, 0.9]])).tolist() == [1, 3, 2, 0]


def test_explanations_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="must have one shape"):
        deletion(ink, ink_picture(), {"a": np.eye(2), "b": np.eye(4)})
    with pytest.raises(ValueError, match="3 × 3 patches do not divide 4 × 4 pixels"):
        deletion(ink, ink_picture(), {"a": np.eye(3)})


@pytest.fixture(scope="module", params=["mean", "cls"])
def run(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), small(vit_experiment(request.param)), steps=2)[
        0
    ]


@pytest.mark.parametrize("fill", ["mean", "black"])
def test_every_explanation_has_a_map_and_a_curve(run, fill):
    found = explained(run, PICTURE, fill=fill)
    assert set(found.maps) == set(found.deletion.curves) == set(EXPLANATIONS)
    assert found.target == found.probabilities.argmax()
    for name, values in found.maps.items():
        assert values.shape == (4, 4), name
        assert values.min() >= 0
        curve = found.deletion.curves[name]
        assert curve[0] == pytest.approx(found.probabilities[found.target], abs=1e-6)
        assert curve[-1] == pytest.approx(found.deletion.random[-1], abs=1e-6)


def test_another_class_can_be_explained(run):
    assert explained(run, PICTURE, 3).target == 3
    with pytest.raises(ValueError, match="There is no class 10: classes are 0 to 9"):
        explained(run, PICTURE, 10)
    with pytest.raises(ValueError, match="can be mean or black, not 'pink'"):
        explained(run, PICTURE, fill="pink")


def test_text_has_no_pictures_to_explain(tmp_path):
    run = trained(tmp_path, small(text_experiment()), steps=1)[0]
    with pytest.raises(ValueError, match="This run reads text"):
        explained(run, PICTURE)


@pytest.mark.parametrize("side", [1, 4, 7, 8])
def test_a_usual_picture_loses_its_patches_one_by_one(side):
    assert stages_of(side**2).tolist() == list(range(side**2 + 1))


def test_small_patches_go_several_at_a_time():
    stages = stages_of(28 * 28)
    assert len(stages) == MAX_STAGES + 1
    assert (stages[0], stages[-1]) == (0, 28 * 28)
    assert (np.diff(stages) > 0).all()
    seen = []

    def ink(pictures):
        seen.append(len(pictures))
        return pictures.mean((1, 2, 3))

    picture = np.ones((1, 28, 28), np.float32)
    found = deletion(ink, picture, {"a": np.random.default_rng(0).random((28, 28))}, n_random=2)
    assert seen == [3 * (MAX_STAGES + 1)]
    np.testing.assert_allclose(found.curves["a"], 1 - found.removed, atol=1e-6)
