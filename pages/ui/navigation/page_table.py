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

    section: a key of ``SECTIONS``. file: its script, below ``pages/``. title: translated where it
    is drawn. icon: Streamlit's name of it. shows_run: it shows the current run, so its address
    names the run. follows_run: how the strip calls it beside the current run; empty where it does
    not stand there. What else an address says is in the page's view (``view_link``).
    """

    name: str
    section: str
    file: str
    title: str
    icon: str
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
    def path(self) -> str:
        return str(PAGES_DIR / self.file)


HOME = "home"
_ROWS = (
    PageFacts("home", "home", "home/page.py", N_("Home"), ":material/home:"),
    PageFacts(
        "train", "watch", "train/page.py", N_("Train"), ":material/model_training:",
        shows_run=True, follows_run=N_("Watch it learn"),
    ),
    PageFacts("runs", "watch", "runs/page.py", N_("Runs"), ":material/stacked_line_chart:"),
    PageFacts(
        "attention", "watch", "attention/page.py", N_("Attention"), ":material/visibility:",
        shows_run=True,
        follows_run=N_("Look inside"),
    ),
    PageFacts(
        "translate", "try", "translate/page.py", N_("Translate"), ":material/translate:",
        shows_run=True,
    ),
    PageFacts(
        "draw", "try", "draw/page.py", N_("Draw a digit"), ":material/gesture:",
        shows_run=True,
    ),
    PageFacts(
        "mistakes", "try", "mistakes/page.py", N_("Where it fails"), ":material/troubleshoot:",
        shows_run=True,
    ),
    PageFacts(
        "knockouts", "break", "knockouts/page.py", N_("Knock-outs"),
        ":material/power_settings_new:", shows_run=True,
    ),
    PageFacts(
        "experiments", "break", "experiments/page.py", N_("Experiments"), ":material/science:",
    ),
    PageFacts(
        "find-the-bug", "break", "find_the_bug/page.py", N_("Find the bug"),
        ":material/bug_report:",
    ),
    PageFacts(
        "compare", "play", "compare/page.py", N_("Compare"), ":material/compare_arrows:",
    ),
    PageFacts(
        "sweeps", "play", "sweeps/page.py", N_("Sweeps"), ":material/travel_explore:",
    ),
    PageFacts(
        "own-data", "play", "own_data/page.py", N_("Own data"), ":material/upload_file:",
    ),
    PageFacts(
        "build", "understand", "architecture/build.py", N_("Build"), ":material/account_tree:",
    ),
    PageFacts(
        "parameters", "understand", "architecture/parameters.py", N_("Parameters"),
        ":material/table_chart:",
    ),
    PageFacts(
        "masks", "understand", "masks/page.py", N_("Masks"), ":material/grid_off:",
    ),
    PageFacts(
        "positions", "understand", "positions/page.py", N_("Positions"), ":material/waves:",
    ),
    PageFacts(
        "walk", "understand", "walk/page.py", N_("Walk through"), ":material/footprint:",
        shows_run=True, follows_run=N_("Walk through"),
    ),
    PageFacts(
        "words", "lessons", "words/page.py", N_("Words into tensors"), ":material/text_fields:",
        shows_run=True,
    ),
    PageFacts(
        "tensors", "lessons", "tensors/page.py", N_("Tensors by sight"), ":material/view_in_ar:",
    ),
    PageFacts(
        "by-hand", "lessons", "by_hand/page.py", N_("Attention by hand"), ":material/calculate:",
    ),
    PageFacts(
        "before", "lessons", "before/page.py", N_("Before the Transformer"), ":material/history:",
    ),
    PageFacts(
        "encoders", "lessons", "encoders/page.py", N_("Reading: encoders"),
        ":material/auto_stories:", shows_run=True,
    ),
    PageFacts(
        "gpt", "lessons", "gpt/page.py", N_("Writing: GPT"), ":material/edit_note:",
        shows_run=True,
    ),
    PageFacts(
        "captions", "lessons", "captions/page.py", N_("Pictures to words"),
        ":material/image_search:", shows_run=True,
    ),
    PageFacts(
        "training-step", "lessons", "training_step/page.py", N_("One training step"),
        ":material/sync:", shows_run=True,
    ),
    PageFacts(
        "speed", "lessons", "speed/page.py", N_("Making it fast"), ":material/speed:",
    ),
    PageFacts(
        "practice", "lessons", "practice/page.py", N_("Good practice"), ":material/verified:",
        shows_run=True,
    ),
)  # fmt: skip
PAGES: dict[str, PageFacts] = {page.name: page for page in _ROWS}


def path_of(name: str) -> str:
    """Return the path of a page's script."""
    return PAGES[name].path


def at(url_path: str) -> PageFacts:
    return PAGES[url_path or HOME]
