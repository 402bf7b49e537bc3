"""A run that learned pictures of one's own is looked into like any other, its set there or not."""

import shutil

import pytest

from tests.data.user_data.files import packed, read_pictures, stripes
from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.kinds import proposals
from tfm_core.data.user_data.pictures import PictureForm, Split, arranged, prepare
from tfm_core.data.user_data.sets import SetMissing
from tfm_core.inspect import stage
from tfm_core.inspect.answers import answers, wrong_first
from tfm_core.inspect.attention.example import look_at_picture, read_picture
from tfm_core.inspect.attention.pictures import answers_by_step, explain_picture
from tfm_core.inspect.attention.trained import model_of, steps_of
from tfm_core.inspect.errors import confusion
from tfm_core.inspect.moments import moments
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.trace.source.carried import carried
from tfm_core.trace.source.file import source_code
from tfm_core.trace.subject import subject


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that learned coloured pictures of 20 x 20 pixels, and whose set is there."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    form = PictureForm(size=20, is_grey=False)
    read = read_pictures([("bars.zip", packed(stripes(40)))], form)
    own = sets.write(prepare(arranged(read, Split()), name="Bars"), parent=store.root / "own-data")
    values = proposals(own)[0].experiment.model_dump()
    values["training"] |= {"steps": 90, "batch_size": 16, "learning_rate": 0.005, "snapshots": 6}
    made = store.create(Experiment.parse(values))
    assert execute(made).state == "finished"
    return made


@pytest.fixture(autouse=True)
def _runs_lie_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_RUNS_DIR", str(run.folder.parent))


def test_it_has_a_probe_snapshots_and_a_stage(run: Run) -> None:
    probe = run.probe()
    assert probe is not None
    assert probe.images is not None
    assert probe.images.shape[1:] == (3, 20, 20)
    assert len(run.snapshot_steps()) >= 3
    shown = stage.read_stage(run)
    assert shown.frames
    assert moments(run, run.snapshot_steps()) is not None


def test_its_pictures_are_explained_and_its_mistakes_found(run: Run) -> None:
    assert wrong_first(run)
    found = answers(run, steps_of(run)[-1])
    assert confusion(found)[0].to_numpy().sum() == found.n_examples == found.n_all
    probe = run.probe()
    assert probe is not None
    assert probe.images is not None
    assert explain_picture(run, probe.images[0]) is not None
    assert answers_by_step(run, probe.images[0])[1].shape[1] == 2


def test_a_picture_of_the_readers_is_read(run: Run) -> None:
    right = 0
    for path, content in stripes(5, seed=1).items():
        picture, _notes = read_picture(run, content)
        assert picture.shape == (3, 20, 20)
        example = look_at_picture(run, picture)
        assert example.probabilities is not None
        right += example.probabilities.argmax() == ("standing" in path)
    assert right >= 8


@pytest.mark.parametrize("is_trained", [True, False])
def test_it_is_walked_through(run: Run, is_trained: bool) -> None:
    model = model_of(run)[0] if is_trained else None
    walked = subject(run.experiment, model)
    assert walked.pictures is not None
    assert walked.pictures.shape[1:] == (3, 20, 20)
    assert {name for names in walked.truth for name in names} == {"lying", "standing"}


def test_its_file_carries_its_classes(run: Run) -> None:
    data = carried(run.experiment)
    assert data.classes == ("lying", "standing")
    assert len(data.mean) == 3
    code = source_code(run.experiment.model, data_shape(run.experiment), data=data)
    compile(code, "model.py", "exec")


def test_without_its_set_it_still_opens_and_says_what_is_missing(run: Run, tmp_path) -> None:
    store = RunStore(tmp_path, recorded=None)
    shutil.copytree(run.folder, tmp_path / run.id)
    alone = store.get(run.id)
    assert alone.problem is None
    assert alone.probe() is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFM_RUNS_DIR", str(tmp_path))
        with pytest.raises(SetMissing, match="is not here"):
            sets.check(alone.experiment.task)
        assert sets.missing(alone.experiment.task)
