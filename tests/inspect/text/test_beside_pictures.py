"""Language against vision: every size is the models' own."""

from tests.inspect.constructed import vit_experiment
from tfm_core.choices.config import ViTConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape
from tfm_core.inspect.text.embeddings import compare_inputs, reads_pixels, reads_words
from tfm_core.models.build import build_model

WORDS = [name for name, one in PRESETS.items() if reads_words(one.experiment)]
PIXELS = [name for name, one in PRESETS.items() if reads_pixels(one.experiment)]


def table(language="translate", vision="vit-digits"):
    made = compare_inputs(PRESETS[language].experiment, PRESETS[vision].experiment)
    return {str(what): both for what, *both in made}


def test_every_model_of_words_and_of_pictures_has_its_own_numbers():
    for name in WORDS:
        experiment = PRESETS[name].experiment
        model, shape = experiment.model, data_shape(experiment)
        found = table(language=name)
        by = found["from piece to vector"][0]
        assert f"{shape.src_vocabulary:,} × {model.d_model}" in by
        n = sum(
            one.numel()
            for key, one in build_model(model, shape).named_parameters()
            if "embedding" in key
        )
        assert found["parameters for that"][0].startswith(f"{n:,},")
    for name in PIXELS:
        experiment = PRESETS[name].experiment
        assert isinstance(experiment.model, ViTConfig)
        found = table(vision=name)
        n = sum(
            one.numel()
            for key, one in build_model(experiment.model, data_shape(experiment)).named_parameters()
            if key.startswith("stem")
        )
        assert found["parameters for that"][1].startswith(f"{n:,},")
        assert "28 × 28 pixels" in found["input"][1]
    assert "to itself and earlier" in table("gpt-grammar")["attention"][0]
    assert "every other" in table("masked-words")["attention"][0]
    assert "labels, from one vector" in table("sentiment")["output"][0]
    assert "tokens at each position" in table("translate")["output"][0]
    assert "reads in order" in table("translate-additive")["positions"][0]
    words = PRESETS["translate"].experiment
    for pooling, more, label in (("mean", 0, "Mean"), ("cls", 1, "CLS token")):
        found = {what: both for what, *both in compare_inputs(words, vit_experiment(pooling))}
        assert f"Always {16 + more} tokens" in found["length"][1]
        assert f"from one vector: {label}" in found["output"][1]
