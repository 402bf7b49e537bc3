"""Treescope shows our models as they are: each module by its class, each parameter by its name."""

import pytest

from tests.models.variants import text_model

treescope = pytest.importorskip("treescope")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only", "encoder-only"])
def test_every_module_and_parameter_is_shown(family):
    model = text_model(family)
    # its release 0.1.10 asks PyTorch 2.13 for names of axes, which are gone; the rest it shows
    words = treescope.render_to_text(model, ignore_exceptions=True)
    for module in model.modules():
        assert type(module).__name__ in words
    for name, _parameter in model.named_parameters():
        assert f"{name.rpartition('.')[2]}=" in words
