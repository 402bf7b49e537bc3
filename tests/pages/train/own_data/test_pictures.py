"""The page on own data: pictures are taken in, looked at, kept, learned, removed, brought back."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.data.user_data.files import as_windows_packs, idx, packed, read_pictures, stripes
from tests.pages.opening import opened_at
from tfm_core.choices.config import Experiment, OwnPicturesTaskConfig, ViTConfig
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.kinds import proposals, report_of
from tfm_core.data.user_data.pictures import PictureForm, Split, arranged, images_of, prepare
from tfm_core.runs import own_sets
from tfm_core.runs.auth import hashed
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunStore
from tfm_core.settings import Settings

PAGE = "train/own_data/page.py"
TOKEN = "a" * 43
BARS = packed(stripes(15))


def words(app: AppTest) -> str:
    groups = (app.main.markdown, app.main.caption, app.main.header, app.main.error)
    return "\n".join(str(one.value).replace("\\", "") for group in groups for one in group)


def taken_in(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    (field,) = app.main.file_uploader
    field.set_value([(name, content, "") for name, content in files]).run()
    return app


def own_of(store: RunStore) -> list[sets.UserSet]:
    return sets.listed(store.root / "own-data")


def kept(store: RunStore) -> sets.UserSet:
    """A set that nobody but the command line keeps."""
    read = read_pictures([("bars.zip", BARS)], PictureForm(size=32))
    made = prepare(arranged(read, Split()), name="Bars")
    return own_sets.keep(made, store=store, visitor=None, settings=Settings())


def test_the_proposal_of_a_set_that_comes_along_fills_the_form(open_page, store):
    app = open_page(PAGE)
    app.segmented_control(key="own-data-pictures-proposal").set_value("careful").run()
    app.button(key="own-form-careful").click().run()
    (example,) = [own for own in sets.examples() if own.kind == "pictures"]
    asked = Experiment.parse(app.session_state["draft"].values)
    assert asked == proposals(example)[2].experiment
    assert app.selectbox(key="own-set-example-shapes").value == "example-shapes"


def test_one_press_trains_a_set(busy_queue, store, open_page):
    app = open_page(PAGE)
    app.segmented_control(key="own-data-pictures-proposal").set_value("quick").run()
    app.button(key="own-train-quick").click().run()
    (run,) = [run for run in store.list() if run.meta.name == "Four shapes"]
    assert run.experiment.task == OwnPicturesTaskConfig().replace(shift=1.0)
    assert app.title[0].value == "Four shapes"  # the Train page, where it waits


def test_pictures_are_read_kept_removed_and_brought_back(store):
    app = opened_at(PAGE, token=TOKEN)
    assert "Shrink photos first" in words(app)
    app = taken_in(app, ("bars.zip", BARS))
    said = words(app)
    assert "Read: bars" in said
    assert "**30** pictures · **2** classes · 28 × 28 pixels · grey" in said
    assert "30 of 30 pictures were resized to 28 x 28 pixels." in said
    assert own_of(store) == []
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert (own.name, own.counts["test"]) == ("bars", 4)
    assert own.id in app.query_params["set"]
    assert "26 training" in words(app)
    app.button(key=f"own-remove-{own.id}").click().run()
    assert own_of(store) == []
    assert "Removed *bars*." in words(app)
    app.button(key=f"own-undo-{own.id}").click().run()
    assert [one.id for one in own_of(store)] == [own.id]


def test_size_colour_and_split_change_what_is_kept(store):
    app = taken_in(opened_at(PAGE, token=TOKEN), ("bars.zip", BARS))
    app.selectbox(key="own-data-size").set_value("40").run()
    app.button_group(key="own-data-colour").set_value("colour").run()
    app.slider(key="own-data-share").set_value(40).run()
    app.text_input(key="own-data-name-pictures-0").set_value("Many *bars*").run()
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert own.name == "Many *bars*"
    assert own.counts["test"] == 12
    assert own.details["size"] == 40
    assert own.details["channels"] == 3


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "cat.txt",
            b"hello",
            "cat.txt is not a zip",
        ),
        ("few.zip", packed(stripes(3)), "Pictures: 6; at least 24"),
    ],
)
def test_what_cannot_be_learned_is_one_sentence_and_nothing_is_kept(store, name, content, said):
    app = taken_in(opened_at(PAGE, token=TOKEN), (name, content))
    assert said in words(app)
    keys = {button.key: button for button in app.main.button}
    assert "own-data-keep" not in keys or keys["own-data-keep"].disabled
    assert own_of(store) == []


def test_a_server_without_room_says_so_and_keeps_what_was_read(store, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNNING", "0")
    app = taken_in(opened_at(PAGE, token=TOKEN), ("bars.zip", BARS))
    app.button(key="own-data-keep").click().run()
    assert "This server accepts no data of your own" in " ".join(
        str(element.value) for element in [*app.warning, *app.error, *app.info]
    )
    assert "Read: bars" in words(app)


def test_a_set_is_chosen_in_the_form_and_patches_follow_its_size(store, monkeypatch):
    own = kept(store)
    monkeypatch.setattr(own_sets, "listed", lambda store, visitor: [own])
    app = opened_at("train/page.py", **{"task.name": "own-pictures"})
    app.selectbox(key="own-set-example-shapes").set_value(own.id).run()
    asked = Experiment.parse(app.session_state["draft"].values)
    assert isinstance(asked.task, OwnPicturesTaskConfig)
    assert isinstance(asked.model, ViTConfig)
    assert (asked.task.data, asked.task.image_size, asked.model.patch_size) == (own.id, 32, 4)


def test_a_configuration_whose_set_is_gone_says_so(store):
    values = Experiment.parse(
        {"model": {"family": "vit"}, "task": {"kind": "own-pictures", "data": "0" * 20}}
    )
    app = opened_at("train/page.py", draft=values)
    assert "The data set 00000000000000000000 is not on this machine" in words(app)


def field_keys(app: AppTest) -> dict[str, str]:
    """Return the keys of the fields that ask how to read an upload, by what they ask."""
    fields = [*app.main.button_group, *app.main.selectbox, *app.main.toggle]
    found = {}
    for name in ("folders", "encoding", "is_turned"):
        for field in fields:
            if str(field.key).startswith(f"own-data-{name}-"):
                found[name] = str(field.key)
    return found


def strips(app: AppTest) -> str:
    return "".join(str(one.proto.body) for one in app.main.get("html"))


def test_folders_that_may_be_splits_are_asked_about(store):
    files = {
        path.replace("bars", part): content
        for part in ("seg_train", "seg_test", "extra")
        for path, content in stripes(15, seed=len(part)).items()
    }
    app = taken_in(opened_at(PAGE, token=TOKEN), ("set.zip", packed(files)))
    assert "**60** pictures · **2** classes" in words(app)
    assert "33% of the file was skipped (30 of 90)." in words(app)
    field = app.main.button_group(key=field_keys(app)["folders"])
    assert field.value == "splits"
    field.set_value("classes").run()
    assert "**90** pictures · **3** classes" in words(app)


def test_another_encoding_of_names_can_be_chosen(store):
    content = as_windows_packs(["고양이", "개"], "cp949")
    app = taken_in(opened_at(PAGE, token=TOKEN), ("animals.zip", content))
    field = app.main.selectbox(key=field_keys(app)["encoding"])
    assert field.value == "cp949"
    assert "<figcaption>고양이 · 3<" in strips(app)
    field.set_value("gbk").run()
    assert "고양이".encode("cp949").decode("gbk") in strips(app)


def test_emnist_is_turned_unless_it_is_switched_off(store):
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28)).astype(np.uint8)
    files = (
        ("emnist-letters-train-images-idx3-ubyte", idx(images.swapaxes(1, 2))),
        ("emnist-letters-train-labels-idx1-ubyte", idx(np.arange(40) % 3 + 1)),
    )
    app = taken_in(opened_at(PAGE, token=TOKEN), *files)
    assert "Pictures transposed: 40." in words(app)
    app.main.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert own.details["classes"] == ["1", "2", "3"]
    np.testing.assert_array_equal(images_of(report_of(own))[:, 0], images)
    app = taken_in(opened_at(PAGE, token=TOKEN), *files)
    app.main.toggle(key=field_keys(app)["is_turned"]).set_value(False).run()
    assert "transposed" not in words(app)


def test_who_removes_a_set_reads_which_runs_learned_from_it(busy_queue, store):
    app = taken_in(opened_at(PAGE, token=TOKEN), ("bars.zip", BARS))
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    run = store.create(proposals(own)[0].experiment, name="My *bars*", owner=hashed(TOKEN))
    app.run()
    app.button(key=f"own-remove-{own.id}").click().run()
    notices = [*app.warning, *app.error, *app.info]
    assert "uses “bars”" in " ".join(str(one.value) for one in notices)
    write_status(run.folder, Status("finished", step=5, total_steps=5))
    app.run()
    assert "My \\*bars\\*" in app.button(key=f"own-remove-{own.id}").help
    app.button(key=f"own-remove-{own.id}").click().run()
    assert own_of(store) == []
    assert "Removed *bars*. Used by “My *bars*”" in words(app)
    app.button(key=f"own-undo-{own.id}").click().run()
    assert [one.id for one in own_of(store)] == [own.id]


def test_the_link_of_a_damaged_set_says_what_is_wrong(store):
    own = kept(store)
    (own.folder / "set.json").write_text("[]")
    for kind in ("pictures", "text"):
        app = opened_at(PAGE, token=TOKEN, set=own.id, kind=kind)
        assert "This data set is damaged: set.json" in words(app)
        assert not [one for one in app.main.button if str(one.key).startswith("own-train")]
