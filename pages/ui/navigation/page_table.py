"""The pages: one row each. Navigation, links, the search and the tests read this table.

Its order is the only one: menus, Home's map, the search and "Next" follow it. A page is added by
its package, a row here, and its words in ``content/en``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_, PAGES_DIR

SECTIONS = {  # name -> title; one without a title shows its pages in the bar itself
    "home": "",
    "watch": N_("Watch"),
    "try": N_("Try"),
    "break": N_("Break"),
    "play": N_("Play"),
    "understand": N_("Understand"),
    "topics": N_("Topics"),
    "discover": N_("Discover"),
}
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

    section: a key of ``SECTIONS``. title: translated where it is drawn. icon: Streamlit's name of
    it. script: below ``pages/``, if not ``<name>/page.py``. shows_run: it shows the current run, so
    its address names the run. follows_run: its label beside the current run in the strip, or "".
    What else an address says is in the page's view (``view_link``).

    chapter: a key of ``CHAPTERS`` if the page is on the path. goal: what a reader can do
    afterwards, as a verb phrase. minutes: how long that takes. questions: how many have to be
    answered.
    """

    name: str
    section: str
    title: str
    icon: str
    script: str = ""
    shows_run: bool = False
    follows_run: str = ""
    chapter: str = ""
    goal: str = ""
    minutes: int = 0
    questions: int = 0

    def __post_init__(self) -> None:
        if self.section not in SECTIONS:
            known = ", ".join(SECTIONS)
            raise ValueError(f"The page {self.name} stands in {self.section}, not in {known}.")
        if self.chapter and not (self.chapter in CHAPTERS and self.goal and self.minutes > 0):
            known = ", ".join(CHAPTERS)
            raise ValueError(
                f"The page {self.name} needs a goal, minutes and a chapter: one of {known}."
            )

    @property
    def url_path(self) -> str:
        return "" if self.name == HOME else self.name

    @property
    def file(self) -> str:
        return self.script or f"{self.name.replace('-', '_')}/page.py"

    @property
    def needs_model(self) -> bool:
        """Whether it is nothing without the model of the current run, if there is one."""
        return self.shows_run and self.name not in ("train", "attention")

    @property
    def path(self) -> str:
        return str(PAGES_DIR / self.file)


HOME = "home"
_ROWS = (
    PageFacts("home", "home", N_("Home"), ":material/home:"),
    PageFacts("lessons", "home", N_("Lessons"), ":material/school:"),
    PageFacts("train", "watch", N_("Train"), ":material/model_training:",
              shows_run=True, follows_run=N_("Watch it learn")),
    PageFacts("runs", "watch", N_("Runs"), ":material/stacked_line_chart:"),
    PageFacts("class", "watch", N_("Classroom"), ":material/groups:", script="classroom/page.py"),

    PageFacts("words", "topics", N_("Words into tensors"), ":material/text_fields:",
              shows_run=True, chapter="numbers", minutes=6, questions=2,
              goal=N_("Turn text into tokens, ids and vectors")),
    PageFacts("tensors", "topics", N_("Tensors by sight"), ":material/view_in_ar:",
              chapter="numbers", minutes=8, questions=2,
              goal=N_("Predict the shape after view, transpose and matmul")),
    PageFacts("positions", "understand", N_("Positions"), ":material/waves:",
              chapter="numbers", minutes=6,
              goal=N_("Say how a model knows word order")),

    PageFacts("by-hand", "topics", N_("Attention by hand"), ":material/calculate:",
              chapter="attention", minutes=10, questions=4,
              goal=N_("Say what a query, a key and a value are for")),
    PageFacts("masks", "understand", N_("Masks"), ":material/grid_off:",
              chapter="attention", minutes=6,
              goal=N_("Say which query may attend to which key, and why")),
    PageFacts("attention", "watch", N_("Attention"), ":material/visibility:",
              shows_run=True, follows_run=N_("Look inside"), chapter="attention", minutes=8,
              goal=N_("Read an attention map, and find the head that aligns words")),

    PageFacts("build", "understand", N_("Build"), ":material/account_tree:",
              script="architecture/build.py", chapter="model", minutes=6,
              goal=N_("Name the parts of a Transformer, from input to answer")),
    PageFacts("parameters", "understand", N_("Parameters"), ":material/table_chart:",
              script="architecture/parameters.py", chapter="model", minutes=6,
              goal=N_("Count a model’s parameters, and say where most of them are")),
    PageFacts("walk", "understand", N_("Walk through"), ":material/footprint:",
              shows_run=True, follows_run=N_("Walk through"),
              chapter="model", minutes=15, questions=3,
              goal=N_("Follow one example through a whole model")),

    PageFacts("glossary", "understand", N_("Glossary"), ":material/dictionary:"),

    PageFacts("before", "topics", N_("Before the Transformer"), ":material/history:",
              chapter="kinds", minutes=6, questions=2,
              goal=N_("Say what attention added to recurrent networks")),
    PageFacts("encoders", "topics", N_("Reading: encoders"), ":material/auto_stories:",
              shows_run=True, chapter="kinds", minutes=8, questions=2,
              goal=N_("Say how an encoder reads")),
    PageFacts("gpt", "topics", N_("Writing: GPT"), ":material/edit_note:",
              shows_run=True, chapter="kinds", minutes=8, questions=2,
              goal=N_("Say how a GPT reads, and how it picks the next token")),
    PageFacts("captions", "topics", N_("Pictures to words"), ":material/image_search:",
              shows_run=True, chapter="kinds", minutes=6, questions=2,
              goal=N_("Say how a decoder reads a picture")),

    PageFacts("training-step", "topics", N_("One training step"), ":material/sync:",
              shows_run=True, chapter="training", minutes=10, questions=2,
              goal=N_("Explain loss, gradient and update with real numbers")),
    PageFacts("practice", "topics", N_("Good practice"), ":material/verified:",
              shows_run=True, chapter="training", minutes=15, questions=3,
              goal=N_("Get a test result you can defend")),
    PageFacts("speed", "topics", N_("Making it fast"), ":material/speed:",
              chapter="training", minutes=8, goal=N_("Say what makes training faster")),
    PageFacts("compare", "play", N_("Compare"), ":material/compare_arrows:",
              chapter="training", minutes=5,
              goal=N_("Tell a real difference between runs from chance")),
    PageFacts("sweeps", "play", N_("Sweeps"), ":material/travel_explore:",
              chapter="training", minutes=10,
              goal=N_("Search for the settings that learn best")),
    PageFacts("own-data", "play", N_("Own data"), ":material/upload_file:",
              chapter="training", minutes=10,
              goal=N_("Train on your data")),

    PageFacts("translate", "try", N_("Translate"), ":material/translate:",
              shows_run=True, chapter="use", minutes=5,
              goal=N_("Steer how a model writes")),
    PageFacts("draw", "try", N_("Draw a digit"), ":material/gesture:",
              shows_run=True, chapter="use", minutes=5,
              goal=N_("See where a model looks when it reads your digit")),
    PageFacts("mistakes", "try", N_("Where it fails"), ":material/troubleshoot:",
              shows_run=True, chapter="use", minutes=5,
              goal=N_("Find where a model fails")),
    PageFacts("knockouts", "break", N_("Knock-outs"), ":material/power_settings_new:",
              shows_run=True, chapter="use", minutes=6,
              goal=N_("Predict what a model loses without a part")),
    PageFacts("experiments", "break", N_("Experiments"), ":material/science:",
              chapter="use", minutes=10, questions=1,
              goal=N_("Predict and test what one change does")),
    PageFacts("find-the-bug", "break", N_("Find the bug"), ":material/bug_report:",
              chapter="use", minutes=8,
              goal=N_("Recognise a faulty model by its curves and maps")),

    PageFacts("induction", "discover", N_("Induction heads"), ":material/repeat:",
              script="discover/induction.py"),
    PageFacts("chains", "discover", N_("Markov chains in context"), ":material/stairs_2:",
              script="discover/chains.py"),
    PageFacts("adder", "discover", N_("The smallest adder"), ":material/add:",
              script="discover/adder.py"),
    PageFacts("grokking", "discover", N_("Grokking"), ":material/lightbulb:",
              script="discover/grokking.py"),
    PageFacts("sinks", "discover", N_("Attention sinks"), ":material/anchor:",
              script="discover/sinks.py", shows_run=True),
    PageFacts("specialise", "discover", N_("Heads take their roles"), ":material/timeline:",
              script="discover/specialise.py", shows_run=True),
    PageFacts("superposition", "discover", N_("Superposition"), ":material/hub:",
              script="discover/superposition.py"),
    PageFacts("memorising", "discover", N_("Wrong labels"), ":material/playlist_remove:",
              script="discover/memorising.py"),
)  # fmt: skip
PAGES: dict[str, PageFacts] = {page.name: page for page in _ROWS}
WAY: tuple[PageFacts, ...] = tuple(page for page in _ROWS if page.chapter)
"""The path: every page that teaches, from the first to the last."""


def path_of(name: str) -> str:
    return PAGES[name].path


def at(url_path: str) -> PageFacts:
    return PAGES[url_path or HOME]


def after(name: str) -> PageFacts | None:
    """Return the next page of the path; None after the last one and beside the path."""
    names = [page.name for page in WAY]
    following = names.index(name) + 1 if name in names else len(names)
    return WAY[following] if following < len(names) else None


def place_in_bar(page: PageFacts) -> int:
    """Return where the bar shows a page's section, from 0."""
    entries = [
        entry
        for section, title in SECTIONS.items()
        for entry in ([section] if title else [one.name for one in PAGES.values()
                                               if one.section == section])
    ]  # fmt: skip
    return entries.index(page.section if SECTIONS[page.section] else page.name)
