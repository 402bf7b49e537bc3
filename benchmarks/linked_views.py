"""The dataclass of each page that its address is made of, by the name of the page."""

from __future__ import annotations

from typing import Any

from pages.architecture.link import BuildView, ParametersView
from pages.attention.selection_link import Selection
from pages.before.link import BeforeView
from pages.by_hand.link import ByHandView
from pages.classroom.link import ClassView
from pages.compare.link import CompareView
from pages.draw.board import DrawView
from pages.encoders.run import EncodersView
from pages.experiments.opened import ExperimentsView
from pages.find_the_bug.pair import FindTheBugView
from pages.gpt.run import GptView
from pages.knockouts.link import KnockoutsView
from pages.masks.link import MasksView
from pages.mistakes.link import MistakesView
from pages.own_data.state import OwnDataView
from pages.positions.link import PositionsView
from pages.practice.steps import PracticeView
from pages.speed.controls import SpeedView
from pages.sweeps.choice import SweepsView
from pages.tensors.link import TensorsView
from pages.training_step.state import TrainingStepView
from pages.translate.link import TranslateView
from pages.walk.link import WalkView
from pages.words.link import WordsView

VIEWS: dict[str, type[Any]] = {
    "class": ClassView,
    "attention": Selection,
    "translate": TranslateView,
    "draw": DrawView,
    "mistakes": MistakesView,
    "knockouts": KnockoutsView,
    "experiments": ExperimentsView,
    "find-the-bug": FindTheBugView,
    "compare": CompareView,
    "sweeps": SweepsView,
    "own-data": OwnDataView,
    "build": BuildView,
    "parameters": ParametersView,
    "masks": MasksView,
    "positions": PositionsView,
    "walk": WalkView,
    "words": WordsView,
    "tensors": TensorsView,
    "by-hand": ByHandView,
    "before": BeforeView,
    "encoders": EncodersView,
    "gpt": GptView,
    "training-step": TrainingStepView,
    "speed": SpeedView,
    "practice": PracticeView,
}
