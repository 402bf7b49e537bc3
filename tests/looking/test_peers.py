"""What ``look`` finds in other libraries' models is what they return themselves."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from benchmarks import look as peers

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("package", "rows"),
    [
        ("torch", peers.of_pytorch),
        ("transformers", peers.of_transformers),
        ("timm", peers.of_timm),
        ("torchvision", peers.of_torchvision),
    ],
)
def test_each_map_is_found_and_equal(package, rows):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = list(rows())
    assert found
    for name, how, maps, worst, _kinds, _cost in found:
        n_found, n_own = maps.split(" of ")
        assert n_found == n_own, (name, how)
        assert float(worst) < 1e-6, (name, how)
