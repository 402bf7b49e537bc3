"""Configurations: parsed, validated, written, and explained in words."""

import dataclasses
import importlib
import json
import pkgutil
from pathlib import Path

import pytest

from tfm_core import sentences
from tfm_core.choices import variants
from tfm_core.choices.config import (
    MODEL_CONFIGS,
    TASK_CONFIGS,
    TASK_FACTS,
    ConfigError,
    EncoderDecoderConfig,
    Experiment,
    ImageTaskConfig,
    TextTaskConfig,
    TrainingConfig,
    ViTConfig,
    facts_of,
    from_json,
    from_query,
    sequence_len,
    task_config,
    tasks_for,
    to_json,
    to_query,
)
from tfm_core.choices.config.advice import advice, advice_on
from tfm_core.choices.config.base import choices_of, holds_several
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.pretrained_tasks import TRAINS
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.record import Registry
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.data.user_data.pictures import FITS
from tfm_core.data.user_data.tokens import CUTS
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.learning_rate import advised
from tfm_core.inspect.attention.heads import ROLES
from tfm_core.inspect.attention.pictures import EXPLANATIONS
from tfm_core.inspect.mask_lab import MASKS
from tfm_core.inspect.speed.report import COMPARISONS
from tfm_core.inspect.tensors.operations import OPERATIONS
from tfm_core.probe.labels import KINDS
from tfm_core.sentences import Paragraph, StudentError, paragraphs, words

pytestmark = pytest.mark.quick


VIT = {"model.family": "vit"}

CAPTIONER = {"model.family": "captioner"}


def test_experiments_survive_json_and_links_with_their_epsilons():
    for preset in PRESETS.values():
        experiment = preset.experiment
        assert from_json(to_json(experiment)) == experiment, preset.name
        assert from_query(to_query(experiment)) == experiment, preset.name
    for eps in (1e-12, 1e-6, 0.1):
        values = default_sections("decoder-only", "copy")
        values["model"] |= {"norm_eps": eps, "activation": "gelu_tanh"}
        experiment = Experiment.parse(values)
        assert from_json(to_json(experiment)) == experiment
        assert from_query(to_query(experiment)) == experiment
        assert to_query(experiment)["model.norm_eps"] == str(eps)
    values = json.loads(to_json(Experiment()))
    del values["training"]["beta2"]
    assert from_json(json.dumps(values)) == Experiment()


@pytest.mark.parametrize("family", MODEL_CONFIGS)
def test_defaults_of_a_family_and_a_fitting_task_make_an_experiment(family):
    for task in set(tasks_for(family)) - {"cifar-10"}:  # 7 pixels do not divide it
        experiment = Experiment.parse(default_sections(family, task))
        assert sequence_len(experiment) > 1, task
        assert len(to_query(experiment)) == 2, task


def test_configs_are_frozen_and_tasks_their_own_kind_and_old_pictures_as_before():
    with pytest.raises(ValueError, match="frozen"):
        Experiment().seed = 3
    with pytest.raises(ConfigError) as caught:
        from_query({"model.d_model": "-3", "training.learning_rate": "fast"})
    assert len(caught.value.problems) == 2
    experiment = Experiment()
    assert experiment.task_as(TextTaskConfig) is experiment.task
    assert experiment.model_as(EncoderDecoderConfig) is experiment.model
    with pytest.raises(ValueError, match="kind text; this needs ImageTaskConfig"):
        experiment.task_as(ImageTaskConfig)
    with pytest.raises(ValueError, match="Encoder-decoder; this needs ViTConfig"):
        experiment.model_as(ViTConfig)
    digits = Experiment.parse(default_sections("vit", "mnist-5000"))
    values = json.loads(to_json(digits))
    assert values["task"].pop("label_noise") == 0
    assert from_json(json.dumps(values)) == digits
    assert "task.label_noise" not in to_query(digits)
    noisy = digits.replace(task=digits.task.replace(label_noise=0.35).model_dump())
    assert from_query(to_query(noisy)) == noisy


@pytest.mark.parametrize(
    ("query", "field", "sentence"),
    [
        ({"model.family": "rnn"}, "model.family", "choose from encoder-decoder, encoder-only"),
        ({"task.name": "poetry"}, "task.name", "'poetry'; choose from english-korean"),
        ({"model.d_model": "wide"}, "model.d_model", "'wide'; it must be a whole number"),
        ({"model.d_model": "0"}, "model.d_model", "must be at least 2"),
        ({"model.dropout": "1"}, "model.dropout", "must be less than 1"),
        ({"model.dropout": "nan"}, "model.dropout", "must be a finite number"),
        ({"model.norm_first": "perhaps"}, "model.norm_first", "must be true or false"),
        ({"model.norm_eps": "0"}, "model.norm_eps", "must be at least 1e-12"),
        ({"model.norm": "batch"}, "model.norm", "choose from 'layernorm', 'rmsnorm'"),
        ({"training.magic": "1"}, "training.magic", "Unknown setting: training.magic"),
        ({"magic": "1"}, "magic", "Unknown setting: magic"),
        ({"seed": "-1"}, "seed", "must be at least 0"),
        (
            {"model.n_heads": "3"},
            "model.n_heads",
            "does not divide d_model 64; 2 does",
        ),
        (
            {"model.n_kv_heads": "3"},
            "model.n_kv_heads",
            "does not divide n_heads 4; choose from 1, 2",
        ),
        (
            {"model.window": "2", "model.full_every": "1"},
            "model.full_every",
            "no layer has the window",
        ),
        (
            {"model.n_kv_heads": "2", "model.mistakes": "sliced-heads"},
            "model.n_kv_heads",
            "cannot share keys and values",
        ),
        (
            {**VIT, "model.patch_size": "5"},
            "model.patch_size",
            "does not divide the 28x28 pictures",
        ),
        (
            {**VIT, "model.stem": "conv-stack", "model.patch_size": "1"},
            "model.patch_size",
            "cannot halve the 28x28 pictures of MNIST, 5,000 digits to patches of 1; choose from 2",
        ),
        ({**VIT, "task.name": "copy"}, "task.name", "cannot learn"),
        ({"task.name": "mnist"}, "task.name", "cannot learn"),
        ({"task.size": "9"}, "task.size", "must be 1 to 2"),
        (
            {"model.position": "learned", "model.max_len": "5"},
            "model.max_len",
            "position table has 5 rows",
        ),
        (
            {"model.position": "rotary", "model.d_model": "6", "model.n_heads": "2"},
            "model.position",
            "even d_head, not 3",
        ),
        (
            {"model.position": "sinusoidal", "model.d_model": "9", "model.n_heads": "3"},
            "model.position",
            "need an even d_model; it is 9",
        ),
        (
            {**VIT, "model.position": "sinusoidal-2d", "model.d_model": "6", "model.n_heads": "2"},
            "model.position",
            "need a d_model divisible by 4",
        ),
        ({**CAPTIONER, "task.name": "copy"}, "task.name", "cannot learn"),
        ({**CAPTIONER, "task.n_digits": "4"}, "task.n_digits", "must be at most 3"),
        ({**CAPTIONER, "task.language": "french"}, "task.language", "'english' or 'korean'"),
        (
            {**CAPTIONER, "model.patch_size": "8"},
            "model.patch_size",
            "does not divide the 49x49 pictures of Captions of digits; choose from 1, 7, 49",
        ),
        (
            {**CAPTIONER, "model.position": "rotary"},
            "model.position",
            "choose from 'none', 'sinusoidal', 'learned' or 'sinusoidal-2d'",
        ),
        (
            {
                **CAPTIONER,
                "model.d_model": "9",
                "model.n_heads": "3",
                "model.position": "learned",
                "model.text_position": "sinusoidal",
            },
            "model.text_position",
            "need an even d_model; it is 9",
        ),
        ({**VIT, "task.n_validation": "4500"}, "task.n_validation", "leave none of"),
        (
            {**VIT, "training.mistakes": "target-not-shifted"},
            "training.mistakes",
            "writes token by token, unlike Vision Transformer",
        ),
        ({**VIT, "task.label_noise": "0.95"}, "task.label_noise", "at most 0.9"),
        ({**VIT, "task.label_noise": "much"}, "task.label_noise", "a number"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(query, field, sentence):
    with pytest.raises(ConfigError, match=sentence) as caught:
        from_query(query)
    assert [problem.field for problem in caught.value.problems] == [field]


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '{"model": 3}', '{"modle": {}}', b"\xff"])
def test_json_that_is_no_experiment_is_answered_in_words(text):
    with pytest.raises(ConfigError) as caught:
        from_json(text)
    assert all(problem.sentence.endswith((".", "?")) for problem in caught.value.problems)


@pytest.mark.parametrize(("name", "value"), [("norm_eps", 1e-5), ("query_key_gain", 1.0)])
def test_experiments_from_before_something_was_a_setting_are_what_they_were(name, value):
    values = json.loads(to_json(Experiment()))
    assert values["model"].pop(name) == value
    assert from_json(json.dumps(values)) == Experiment()


@pytest.mark.parametrize("kind", [k for k, one in TASK_CONFIGS.items() if not one.is_trained_here])
def test_a_model_that_nothing_here_trains_has_no_training_and_loses_that_of_an_older_app(kind):
    task = TASK_CONFIGS[kind]()
    values = {"model": {"family": task.facts.families[0]}, "task": task.model_dump()}
    experiment = Experiment.parse(values)
    assert experiment.training is None
    assert from_json(to_json(experiment)) == experiment
    invented = {**json.loads(to_json(experiment)), "training": TrainingConfig().model_dump()}
    assert from_json(json.dumps(invented)) == experiment
    with pytest.raises(StudentError, match="not trained here"):
        _ = experiment.trained
    with pytest.raises(ConfigError) as error:
        Experiment.parse(invented)
    assert [one.field for one in error.value.problems] == ["training"]


def test_a_model_that_is_trained_here_needs_a_training():
    with pytest.raises(ConfigError) as error:
        Experiment.parse({"training": None})
    assert [one.field for one in error.value.problems] == ["training"]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_weight_decay_is_the_optimisers_own_until_one_is_given(name):
    own = OPTIMISERS[name].decay
    assert TrainingConfig(optimizer=name).weight_decay == own
    assert TrainingConfig().replace(optimizer=name).weight_decay == own
    assert TrainingConfig(weight_decay=0.3).replace(optimizer=name).weight_decay == 0.3
    assert Experiment.parse({"training": {"optimizer": name}}).training.weight_decay == own
    assert from_query({"training.optimizer": name}).training.weight_decay == own
    for given in (0.0, 0.05, 0.3):  # a link and a file keep what they say
        experiment = Experiment.parse({"training": {"optimizer": name, "weight_decay": given}})
        assert from_query(to_query(experiment)).training.weight_decay == given
        assert from_json(to_json(experiment)).training.weight_decay == given


def test_coupled_weight_decay_is_warned_about_and_its_absence_explained():
    assert advice(TrainingConfig()) == ()
    for rate in (10.0, 1e-5):
        (warning,) = advice(TrainingConfig(learning_rate=rate), usual_rate=0.004)
        assert (warning.field, warning.is_warning) == ("training.learning_rate", True)
        assert "usual 0.004" in warning.sentence
    high = advice(TrainingConfig(learning_rate=10.0), usual_rate=0.004)
    assert "2,500 times" in high[0].sentence
    assert advice(TrainingConfig(learning_rate=0.01), usual_rate=0.004) == ()
    (reason,) = advice(TrainingConfig(optimizer="adam"))
    assert (reason.field, reason.is_warning) == ("training.optimizer", False)
    assert "Adam sets weight decay to 0" in reason.sentence
    (warning,) = advice(TrainingConfig(optimizer="sgd", weight_decay=0.05))
    assert (warning.field, warning.is_warning) == ("training.weight_decay", True)
    assert "Weight decay is 0.05; 0 is safe with SGD. Momentum accumulates" in warning.sentence


@pytest.mark.parametrize(
    ("name", "size", "sizes"),
    [("numbers", 1, {}), ("addition", 1, {"n_test": 50_000}), ("copy", 2, {"n_test": 50_000})],
)
def test_a_task_too_small_for_its_splits_is_refused(name, size, sizes):
    few = {"n_train": 8, "n_validation": 8, **sizes}
    with pytest.raises(ConfigError, match="leave none"):
        TextTaskConfig.parse({"name": name, "size": size, **few})
    TextTaskConfig.parse({"name": name, "size": size, **few, "n_test": 8})


def test_half_characters_huge_numbers_and_thousands_of_mistakes_are_said():
    text = "\\ud800 a b c " * 20
    values = '{"model": {"family": "decoder-only"}, "task": {"kind": "corpus", "text": "%s"}}'
    with pytest.raises(ConfigError, match="The text has a broken character"):
        from_json(values % text)
    with pytest.raises(ConfigError, match="Invalid JSON: a number is too large"):
        from_json('{"seed": ' + "1" * 5_000 + "}")
    keys = {f"{'x' * 100}{n}": n for n in range(60_000)}
    with pytest.raises(ConfigError) as caught:
        from_json(json.dumps(keys))
    said = caught.value.sentences
    assert len(said) == 9
    assert said[-1] == "And 59,992 more."
    assert max(map(len, said)) < 120
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("settings", "field", "words", "better"),
    [
        ({"batch_size": 512}, "training.batch_size", "the 100 examples", 6),
        ({"batch_warmup": 1.0}, "training.batch_warmup", "half a batch", 0.5),
        ({"batch_warmup": 0.4, "batch_size": 1}, "training.batch_warmup", "cannot be halved", 0.0),
        ({"warmup": 1.0}, "training.warmup", "never ends", 0.1),
        ({"warmup": 0.7}, "training.warmup", "takes 70% of the steps", 0.1),
        ({"validate_every": 5000}, "training.validate_every", "overfitting shows too late", 100),
        ({"optimizer": "sgd", "clip_norm": 0.001}, "training.clip_norm", "hardly learn", 1.0),
        ({"label_smoothing": 0.8}, "training.label_smoothing", "Smoothing of 80%", 0.1),
    ],
)
def test_what_is_plainly_sick_is_said_before_the_start_with_what_would_be_well(
    settings, field, words, better
):
    said = {
        one.field: one
        for one in advice(TrainingConfig(**{"batch_size": 32, **settings}), n_train=100)
    }
    assert said[field].is_warning
    assert words in said[field].sentence
    assert said[field].better == better


def test_presets_are_not_warned_about_and_fp16_on_a_cpu_is_slower():
    sick = TrainingConfig(
        batch_size=512, warmup=1.0, learning_rate=10.0, optimizer="adam", weight_decay=0.1
    )
    for one in advice(sick, usual_rate=0.004, n_train=100):
        if one.is_warning:
            sick = sick.replace(**{one.field.partition(".")[2]: one.better})
    assert not [one for one in advice(sick, usual_rate=0.004, n_train=100) if one.is_warning]
    for preset in PRESETS.values():
        assert [one for one in advised(preset.experiment) if one.is_warning] == [], preset.name
    assert "fp16 is for GPUs" in advice_on("cpu", TrainingConfig(precision="fp16"))
    assert advice_on("cuda:0", TrainingConfig(precision="fp16")) is None
    assert advice_on("cpu", TrainingConfig(precision="bf16")) is None


CONFIGS = {*MODEL_CONFIGS.values(), *map(task_config, TASK_FACTS), TrainingConfig}

CARRYING = ("own-", "pretrained", "tuned", "look", "foreign")  # facts of a set or a model

USUAL = Path(__file__).with_name("usual.json")

PICKED = [
    (config, name, choices)
    for config in sorted(CONFIGS, key=lambda config: config.__name__)
    for name, field in config.model_fields.items()
    if (choices := choices_of(field)) is not None
]


def test_a_link_that_leaves_settings_out_means_what_it_meant():
    """Links and files leave out what is usual, so a usual value never changes."""
    found = {name: config().model_dump() for name, config in MODEL_CONFIGS.items()}
    generated = [name for name in TASK_FACTS if not name.startswith(CARRYING)]
    found |= {name: task_config(name).named(name).model_dump() for name in generated}
    found["training"] = TrainingConfig().model_dump()
    assert json.loads(json.dumps(found)) == json.loads(USUAL.read_text())


def test_fields_take_the_names_of_their_registries_each_with_label_and_help():
    for config, name, choices in PICKED:
        assert all(choice.label for choice in choices.values())
        assert all(choice.help.endswith((".", "?", ")")) for choice in choices.values())
        assert len({choice.label for choice in choices.values()}) == len(choices), (config, name)
    for config, name, choices in PICKED:
        field, schema = config.model_fields[name], config.model_json_schema()["properties"][name]
        if holds_several(field):
            items = schema["items"]
            assert items.get("enum", [items.get("const")]) == list(choices)
            assert field.default == ()
            value, words, known = ["lion"], "Unknown name lion", choices
        else:
            assert schema["enum"] == list(choices)
            assert field.default in choices
            value, words, known = "spiral", f"{name} is 'spiral'; choose", map(repr, choices)
        with pytest.raises(ConfigError, match=words) as wrong:
            config.parse({name: value})
        assert all(each in str(wrong.value) for each in known)


SUBJECTS = [
    importlib.import_module(f"tfm_core.choices.variants.{each.name}")
    for each in pkgutil.iter_modules(variants.__path__)
]

REGISTRIES = [MISTAKES, CUTS, FITS] + [
    each for subject in SUBJECTS for each in vars(subject).values() if isinstance(each, Registry)
]

EXPLAINED = [*MODEL_CONFIGS.values(), *TASK_CONFIGS.values(), TrainingConfig, Experiment]

RECORDS = [
    *(record for registry in REGISTRIES for record in registry.values()),
    *PRESETS.values(),
    *TRAINS.values(),
    *(facts_of(name) for config in TASK_CONFIGS.values() for name in config.tasks),
    *OPERATIONS.values(),
    *(one for operation in OPERATIONS.values() for one in operation.parameters),
]


OF_SUBJECTS = (
    "architectures",
    "attention",
    "comparisons",
    "explanations",
    "masks",
    "phrases",
    "roles",
)
"""Whose words are read once a subject is asked for."""
OTHER_MASKS = "unmasked", "reversed"
SETTINGS = {
    "model": {name for config in MODEL_CONFIGS.values() for name in config.model_fields},
    "task": {name for config in TASK_CONFIGS.values() for name in config.model_fields},
    "training": {*TrainingConfig.model_fields},
}


def words_of(record):
    return [field.name for field in dataclasses.fields(record)]


def test_all_words_of_choices_belong_to_one_and_none_is_missing_in_a_language():
    shown = [getattr(record, name) for record in RECORDS for name in words_of(record)]
    for config in EXPLAINED:
        for field in config.model_fields.values():
            shown += [field.title, field.description]
    shown += words("choices/settings/shape").values()
    used = {each.key for each in shown if isinstance(each, Paragraph)}
    subjects = {*ARCHITECTURES, *COMPARISONS, *EXPLANATIONS, *KINDS, *MASKS, *ROLES}
    subjects |= {*OTHER_MASKS}
    subjects |= {f"{section}.{name}" for section, names in SETTINGS.items() for name in names}
    subjects.add("seed")
    for english in Path(sentences.CONTENT_DIR / "en" / "choices").glob("*.md"):
        there = {f"choices/{english.stem}/{name}" for name in paragraphs(english)}
        if english.stem in OF_SUBJECTS:
            unused = {
                name for name in paragraphs(english) if name.rpartition(".")[0] not in subjects
            }
            assert not unused
        else:
            assert there <= used, there - used
        for other in sentences.CONTENT_DIR.glob(f"*/choices/{english.name}"):
            assert paragraphs(other).keys() == paragraphs(english).keys()
