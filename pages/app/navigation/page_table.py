"""The pages: one row each. Navigation, links, the search and the tests read this table.

Its order is that of the search and of "Next"; ``PLACES`` has that of the bar. A page is added by
its file, a row here, its place, and its words in ``content/en``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pages.app.address.parameters import whole
from pages.i18n import N_, PAGES_DIR

PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "home": (N_("Home"), ("home",)),
    "train": (N_("Train"), ("train", "own-data")),
    "look-inside": (
        N_("Look inside"),
        ("walk", "attention", "masks", "positions", "parameters", "build", "knockouts", "mistakes"),
    ),
    "try-it": (N_("Try it"), ("try",)),
    "compare": (N_("Compare"), ("compare", "sweeps")),
    "learn": (
        N_("Learn"),
        (
            *("numbers", "by-hand", "model", "before", "training-step", "practice", "use"),
            *("challenges", "glossary"),
        ),
    ),
    "findings": (N_("Findings"), ("findings",)),
    "runs": (N_("Runs"), ("runs",)),
    "teach": (N_("Teach"), ("class", "plan")),
}
"""The places: name → title and pages; the first page opens. Those of the bar, then ``MENU``."""
MENU = "teach"
"""The place that stands in the menu."""
FINDING = "finding"
"""What the address of the page "findings" calls the one in sight."""
FINDINGS = (
    "induction",
    "chains",
    "grokking",
    "adder",
    "sinks",
    "specialise",
    "superposition",
    "memorising",
)
"""The findings it shows, each with its own words; older links call them pages."""
CHAPTERS = {  # of the path: name -> title
    "numbers": N_("Words become numbers"),
    "attention": N_("Attention"),
    "model": N_("The whole model"),
    "kinds": N_("What models do"),
    "training": N_("Train it well"),
    "use": N_("Use it and break it"),
}


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a page.

    title: translated where it is drawn. icon: Streamlit's name of it. script: below ``pages/``, if
    not ``<place>/<name>.py`` or ``<place>/<name>/page.py``. tab: its title among the pages of its
    place, where that is shorter. also: other words that find it. shows_run: it shows the current
    run, so its address names the run. What else an address says is in the page's view (``view``).

    chapter: a key of ``CHAPTERS`` if the page is on the path. goal: what a reader can do
    afterwards, as a verb phrase. minutes: how long that takes. questions: how many have to be
    answered.
    """

    name: str
    title: str
    icon: str
    script: str = ""
    tab: str = ""
    also: str = ""
    shows_run: bool = False
    chapter: str = ""
    goal: str = ""
    minutes: int = 0
    questions: int = 0

    def __post_init__(self) -> None:
        if self.chapter and not (self.chapter in CHAPTERS and self.goal and self.minutes > 0):
            known = ", ".join(CHAPTERS)
            raise ValueError(
                f"The page {self.name} needs a goal, minutes and a chapter: one of {known}."
            )

    @property
    def place(self) -> str:
        """The key of ``PLACES`` under which it stands."""
        return next(place for place, (_title, pages) in PLACES.items() if self.name in pages)

    @property
    def url_path(self) -> str:
        return "" if self.name == HOME else self.name

    @property
    def file(self) -> str:
        package = self.place if self.place == self.name else f"{self.place}/{self.name}"
        package = package.replace("-", "_")
        is_file = (PAGES_DIR / f"{package}.py").is_file()
        return self.script or (f"{package}.py" if is_file else f"{package}/page.py")

    @property
    def has_head(self) -> bool:
        """Whether the run stands above it; Train names its own."""
        return self.shows_run and self.name != "train"

    @property
    def needs_model(self) -> bool:
        """Whether it is nothing without the model of the current run, if there is one."""
        able = ("numbers", "attention", "parameters", "build", "masks", "positions")
        return self.has_head and self.name not in able

    @property
    def path(self) -> str:
        return str(PAGES_DIR / self.file)


HOME = "home"
_ROWS = (
    PageFacts("home", N_("Home"), ":material/home:"),
    PageFacts("train", N_("Train"), ":material/model_training:", shows_run=True),
    PageFacts(
        "runs",
        N_("Runs"),
        ":material/stacked_line_chart:",
        also="export import download upload save zip html onnx csv open a pretrained model "
        "hugging face gpt-2 bert llama vit folder 내보내기 가져오기 사전 학습 모델 열기",
    ),
    PageFacts(
        "class",
        N_("Classroom"),
        ":material/groups:",
        script="teach/classroom.py",
        also="start a class teacher pupils students school 수업 시작하기",
    ),
    PageFacts(
        "plan",
        N_("A plan for 45 minutes"),
        ":material/event_note:",
        script="teach/plan.py",
        also="lesson plan teacher print school 수업 계획 지도안 교사 인쇄",
    ),
    PageFacts(
        "numbers",
        N_("Words become numbers"),
        ":material/text_fields:",
        tab=N_("Numbers"),
        also="words into tensors by sight tokens 단어에서 텐서로 눈으로 보는 텐서",
        shows_run=True,
        chapter="numbers",
        minutes=14,
        questions=4,
        goal=N_("How text becomes tensors, and their shapes"),
    ),
    PageFacts(
        "positions",
        N_("Positions"),
        ":material/waves:",
        shows_run=True,
        chapter="numbers",
        minutes=6,
        goal=N_("How a model knows word order"),
    ),
    PageFacts(
        "by-hand",
        N_("Attention by hand"),
        ":material/calculate:",
        tab=N_("By hand"),
        chapter="attention",
        minutes=10,
        questions=4,
        goal=N_("What queries, keys and values are for"),
    ),
    PageFacts(
        "masks",
        N_("Masks"),
        ":material/grid_off:",
        shows_run=True,
        chapter="attention",
        minutes=6,
        goal=N_("Which query may attend to which key, and why"),
    ),
    PageFacts(
        "attention",
        N_("Attention"),
        ":material/visibility:",
        shows_run=True,
        chapter="attention",
        minutes=8,
        goal=N_("How to read an attention map, and which head aligns words"),
    ),
    PageFacts(
        "model",
        N_("The whole model"),
        ":material/layers:",
        tab=N_("Model"),
        also="residual stream norm encoder decoder 잔차 스트림 정규화 인코더 디코더",
        shows_run=True,
        chapter="model",
        minutes=8,
        questions=1,
        goal=N_("What each part of a Transformer does, and where its parameters are"),
    ),
    PageFacts(
        "build",
        N_("Build"),
        ":material/account_tree:",
        shows_run=True,
        chapter="model",
        minutes=6,
        goal=N_("The parts of a Transformer, from input to answer"),
    ),
    PageFacts(
        "parameters",
        N_("Parameters"),
        ":material/table_chart:",
        shows_run=True,
        chapter="model",
        minutes=6,
        goal=N_("How many parameters a model has, and where they are"),
    ),
    PageFacts(
        "walk",
        N_("Walk through"),
        ":material/footprint:",
        tab=N_("Walk"),
        shows_run=True,
        chapter="model",
        minutes=15,
        questions=3,
        goal=N_("How one example passes through a model"),
    ),
    PageFacts("glossary", N_("Glossary"), ":material/dictionary:"),
    PageFacts(
        "before",
        N_("Before the Transformer"),
        ":material/history:",
        tab=N_("RNN"),
        chapter="kinds",
        minutes=6,
        questions=2,
        goal=N_("What attention added to recurrent networks"),
    ),
    PageFacts(
        "try",
        N_("Try it"),
        ":material/edit_note:",
        script="try_it/page.py",
        also="translate draw a digit pen writing GPT prompt reading encoders sentiment "
        "fill in the blank pictures to words captions add 번역 숫자 그리기 쓰기 읽기 인코더 "
        "감정 빈칸 그림을 말로 캡션 덧셈",
        shows_run=True,
        chapter="kinds",
        minutes=25,
        questions=6,
        goal=N_("How a model reads, and how to steer its writing"),
    ),
    PageFacts(
        "training-step",
        N_("One training step"),
        ":material/sync:",
        tab=N_("Training step"),
        shows_run=True,
        chapter="training",
        minutes=10,
        questions=2,
        goal=N_("Loss, gradient and update in real numbers"),
    ),
    PageFacts(
        "practice",
        N_("Train it well"),
        ":material/verified:",
        tab=N_("Practice"),
        also="good practice making it fast speed 좋은 습관 빠르게 만들기",
        shows_run=True,
        chapter="training",
        minutes=23,
        questions=3,
        goal=N_("How to get a test result you can trust"),
    ),
    PageFacts(
        "compare",
        N_("Compare"),
        ":material/compare_arrows:",
        script="compare/compare.py",
        chapter="training",
        minutes=5,
        goal=N_("How to tell a real difference from chance"),
    ),
    PageFacts(
        "sweeps",
        N_("Sweeps"),
        ":material/travel_explore:",
        also="best settings optuna grid random hyperparameter 가장 좋은 설정 찾기",
        chapter="training",
        minutes=10,
        goal=N_("How to find the best settings"),
    ),
    PageFacts(
        "own-data",
        N_("Own data"),
        ":material/upload_file:",
        also="use my own data csv json zip upload pictures texts 내 데이터 사용하기",
        chapter="training",
        minutes=10,
        goal=N_("How to train on your data"),
    ),
    PageFacts(
        "use",
        N_("Use it and break it"),
        ":material/construction:",
        tab=N_("Use it"),
        also="knock-out explanation failure proof 녹아웃 설명 실패 증명",
        shows_run=True,
        chapter="use",
        minutes=8,
        questions=1,
        goal=N_("What knock-outs and attention maps prove"),
    ),
    PageFacts(
        "mistakes",
        N_("Where it fails"),
        ":material/troubleshoot:",
        shows_run=True,
        chapter="use",
        minutes=5,
        goal=N_("Where a model fails"),
    ),
    PageFacts(
        "knockouts",
        N_("Knock-outs"),
        ":material/power_settings_new:",
        shows_run=True,
        chapter="use",
        minutes=6,
        goal=N_("What a model loses without a part"),
    ),
    PageFacts(
        "challenges",
        N_("Challenges"),
        ":material/emoji_events:",
        also="experiments lessons find the bug exercises tasks quiz 실험 수업 버그 찾기 연습",
        chapter="use",
        minutes=18,
        questions=2,
        goal=N_("What one change does, and how to recognise a faulty model"),
    ),
    PageFacts("findings", N_("Findings"), ":material/lightbulb:"),
)
PAGES: dict[str, PageFacts] = {page.name: page for page in _ROWS}
WAY: tuple[PageFacts, ...] = tuple(page for page in _ROWS if page.chapter)
"""The path: every page that teaches, from the first to the last."""


def path_of(name: str) -> str:
    return PAGES[name].path


def at(url_path: str) -> PageFacts:
    return PAGES[url_path or HOME]


def beside(name: str) -> list[PageFacts]:
    """Return the pages of a page's place, in order."""
    return [PAGES[other] for other in PLACES[PAGES[name].place][1]]


def after(name: str) -> PageFacts | None:
    """Return the next page of the path; None after the last one and beside the path."""
    names = [page.name for page in WAY]
    following = names.index(name) + 1 if name in names else len(names)
    return WAY[following] if following < len(names) else None


@dataclass(frozen=True, slots=True)
class OldAddress:
    """Where the links of a former page lead.

    page: the page that holds it now. renamed: former parameter → its name now; a number stays a
    step. besides: what a link asks for if it does not set it. mark: the act of the page now that
    counts as having used the former page; "" if its questions do.
    """

    page: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    besides: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""


_GPT = {"part": "view", "prompt": "text", "lens": "text", "sum": "text"}
OLD_ADDRESSES: dict[str, OldAddress] = {
    "translate": OldAddress(
        "try", {"weights": "step", "picture": "scene"}, {"view": "write", "method": "greedy"}
    ),
    "draw": OldAddress("try", {}, {"view": "draw"}),
    "gpt": OldAddress("try", _GPT, {"view": "read"}),
    "encoders": OldAddress("try", {}, {"view": "sentiment"}),
    "captions": OldAddress("try", {}, {"view": "scene"}),
    "walk": OldAddress("walk", {"step": "part", "weights": "step"}),
    "positions": OldAddress("positions", {"picture": "example"}),
    "words": OldAddress("numbers", {"view": "figure"}),
    "tensors": OldAddress("numbers", {}, {"figure": "operation"}),
    "before": OldAddress("before", {"view": "figure"}),
    "practice": OldAddress("practice", {"step": "figure"}),
    "speed": OldAddress("practice", {}, {"figure": "speed"}),
    "lessons": OldAddress("challenges"),
    "experiments": OldAddress(
        "challenges", {}, {"experiment": "no-causal-mask"}, mark="experiment"
    ),
    "find-the-bug": OldAddress("challenges", {"level": "bug"}, {"bug": "2"}, mark="bug"),
    **{name: OldAddress("findings", {}, {FINDING: name}) for name in FINDINGS},
}
"""By the name that links say."""
_VIEWS = {("gpt", "write"): "continue"}
"""Old page and the view that its link says → the name of that view today."""


def current_address(page: str, query: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the page that an old or new address leads to, and its query."""
    old = OLD_ADDRESSES.get(page)
    if old is None:
        return page, dict(query)
    new: dict[str, str] = {}
    for name, text in query.items():
        is_step = name == "step" and whole(text) is not None
        new[name if is_step else old.renamed.get(name, name)] = text
    new = {**old.besides, **new}
    if "view" in new:
        new["view"] = _VIEWS.get((page, new["view"]), new["view"])
    return old.page, new
