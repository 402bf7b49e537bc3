"""The pages: one row each. Navigation, links, the search and the tests read this table.

A page is added by its package, a row here, and its words in ``content/en``.
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
    "lessons": N_("Lessons"),
}


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a page.

    section: a key of ``SECTIONS``. title: translated where it is drawn. icon: Streamlit's name of
    it. script: below ``pages/``, if not ``<name>/page.py``. shows_run: it shows the current run, so
    its address names the run. follows_run: its label beside the current run in the strip, or "".
    What else an address says is in the page's view (``view_link``).
    """

    name: str
    section: str
    title: str
    icon: str
    script: str = ""
    shows_run: bool = False
    follows_run: str = ""

    def __post_init__(self) -> None:
        if self.section not in SECTIONS:
            known = ", ".join(SECTIONS)
            raise ValueError(f"The page {self.name} stands in {self.section}, not in {known}.")

    @property
    def url_path(self) -> str:
        return "" if self.name == HOME else self.name

    @property
    def file(self) -> str:
        return self.script or f"{self.name.replace('-', '_')}/page.py"

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
    PageFacts("attention", "watch", N_("Attention"), ":material/visibility:",
              shows_run=True, follows_run=N_("Look inside")),
    PageFacts("translate", "try", N_("Translate"), ":material/translate:", shows_run=True),
    PageFacts("draw", "try", N_("Draw a digit"), ":material/gesture:", shows_run=True),
    PageFacts("mistakes", "try", N_("Where it fails"), ":material/troubleshoot:", shows_run=True),
    PageFacts("knockouts", "break", N_("Knock-outs"), ":material/power_settings_new:",
              shows_run=True),
    PageFacts("experiments", "break", N_("Experiments"), ":material/science:"),
    PageFacts("find-the-bug", "break", N_("Find the bug"), ":material/bug_report:"),
    PageFacts("compare", "play", N_("Compare"), ":material/compare_arrows:"),
    PageFacts("sweeps", "play", N_("Sweeps"), ":material/travel_explore:"),
    PageFacts("own-data", "play", N_("Own data"), ":material/upload_file:"),
    PageFacts("build", "understand", N_("Build"), ":material/account_tree:",
              script="architecture/build.py"),
    PageFacts("parameters", "understand", N_("Parameters"), ":material/table_chart:",
              script="architecture/parameters.py"),
    PageFacts("masks", "understand", N_("Masks"), ":material/grid_off:"),
    PageFacts("positions", "understand", N_("Positions"), ":material/waves:"),
    PageFacts("walk", "understand", N_("Walk through"), ":material/footprint:",
              shows_run=True, follows_run=N_("Walk through")),
    PageFacts("words", "lessons", N_("Words into tensors"), ":material/text_fields:",
              shows_run=True),
    PageFacts("tensors", "lessons", N_("Tensors by sight"), ":material/view_in_ar:"),
    PageFacts("by-hand", "lessons", N_("Attention by hand"), ":material/calculate:"),
    PageFacts("before", "lessons", N_("Before the Transformer"), ":material/history:"),
    PageFacts("encoders", "lessons", N_("Reading: encoders"), ":material/auto_stories:",
              shows_run=True),
    PageFacts("gpt", "lessons", N_("Writing: GPT"), ":material/edit_note:", shows_run=True),
    PageFacts("captions", "lessons", N_("Pictures to words"), ":material/image_search:",
              shows_run=True),
    PageFacts("training-step", "lessons", N_("One training step"), ":material/sync:",
              shows_run=True),
    PageFacts("speed", "lessons", N_("Making it fast"), ":material/speed:"),
    PageFacts("practice", "lessons", N_("Good practice"), ":material/verified:", shows_run=True),
)  # fmt: skip
PAGES: dict[str, PageFacts] = {page.name: page for page in _ROWS}


def path_of(name: str) -> str:
    return PAGES[name].path


def at(url_path: str) -> PageFacts:
    return PAGES[url_path or HOME]
