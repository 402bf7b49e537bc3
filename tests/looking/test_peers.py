"""What ``look`` finds in other libraries' models is what they return themselves."""

from importlib.util import find_spec

import pytest

from tests.looking import peer_models as peers

pytestmark = pytest.mark.filterwarnings("ignore")


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
    for one in found:
        assert one.n_found == one.n_own, one
        assert one.worst < 1e-6, one
