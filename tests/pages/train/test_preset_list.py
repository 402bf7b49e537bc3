"""The list of presets over Train: every preset is there, and a press takes its settings."""

from pages.app.navigation.page_table import PAGES
from pages.train.preset_list import ALL, FEW, START_HERE, TEACHES
from tfm_core.choices.presets import PRESETS


def test_every_preset_is_listed_and_a_press_takes_its_settings(store, open_page):
    assert set(TEACHES) == {preset.experiment.model.family for preset in PRESETS.values()}
    app = open_page(PAGES["train"].file)
    for chosen, names in {FEW: [*START_HERE], ALL: [*PRESETS]}.items():
        app.session_state["presets-teach"] = chosen
        app.button(key="presets-open").click().run()
        listed = [button.key for button in app.button if button.key.startswith("preset-")]
        assert listed == [f"preset-{name}" for name in names]
    app.button(key="preset-copy").click().run()
    (chosen,) = [box.value for box in app.selectbox if box.label == "Preset"]
    assert chosen == "copy"
    assert not [button for button in app.button if button.key.startswith("preset-")]
