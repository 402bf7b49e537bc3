"""What people read is marked where it is written, translated where it is drawn, and there."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests import translation
from tests.static.repository import Repository, Source, Violation, line_of
from tfm_core.korean import PARTICLES

LOOKED_UP = {"_", "ngettext", "content"}
"""Functions that translate into the language of the session."""
PARAGRAPHS = {"Paragraph": "tfm_core/content/en", "paragraph": "pages/content/en/texts"}
"""Functions that read a text by its name, and the folders of these texts."""
WORDS = {  # the fields of records that pages draw
    "label",
    "help",
    "title",
    "learns",
    "reaches",
    "look_for",
    "cross",
    "patch",
    "where",
    "true_means",
    "size_label",
    "size_help",
    "x_title",
    "memory_words",
    "decay_words",
    "unseen",
}
FAULTS = {  # what Korean texts do not say, and what they say instead
    r"[\d}] %(?![{(\w])|% ?포인트": "95%, %p",
    r"[\d}] [MG](?:개|회)": "157만, 42.7억",
    ", 미리 학습됨": "the name alone: a badge says that it is recorded",
    "(?<!주피터 )노트북": "주피터 노트북",
    "하위 레이어": "서브레이어",
    "(?<!은닉)층": "레이어",
    r"(?<!\d)(?:[1-9]|10)번째|\}번째": "첫 번째, {n:번째}",
    r"어텐션[하합해할했]": "어텐션을 계산하다",
    r"니까\?|십시오": "-까요?, -세요",
    r"[^}]\}[*`”]*(?:" + "|".join(PARTICLES) + r"|은\(는\))(?![가-힣])": "{name:은}",
}
NAMES = {
    "BERT-base",
    "BERT-large",
    "T5-base",
    "T5-small",
    "<bos>",
    "n_heads",
    "d_model",
    "d_ff",
    "keepdim",
}  # alike in every language


def name_of(node: ast.expr) -> str:
    """Return the name of what is called, without what it belongs to."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def no_sentence_is_translated_at_import(repository: Repository) -> Iterator[Violation]:
    """Sentences are looked up where they are drawn: at import there is no session yet."""
    scripts = {"pages/frame.py"} | {  # what Streamlit runs at every draw
        f"pages/{ast.literal_eval(each.value)}"
        for source in repository.python("pages/app/navigation/page_table.py")
        for call in source.calls
        for each in call.keywords
        if each.arg == "script"
    }
    for source in [*repository.python("app.py"), *repository.pages]:
        if source.path not in scripts and not source.path.endswith("/page.py"):
            for call in _at_import(source.tree):
                if isinstance(call.func, ast.Name) and call.func.id in LOOKED_UP:
                    yield source.violation(call.lineno, "mark it with N_ and translate it later")


def _at_import(node: ast.AST) -> Iterator[ast.Call]:
    """Yield every call that runs when a file is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            outside = [*child.decorator_list, *child.args.defaults, *child.args.kw_defaults]
            for each in outside:
                if each is not None:
                    yield from _at_import(ast.Expr(each))
        elif not isinstance(child, ast.Lambda):
            if isinstance(child, ast.Call):
                yield child
            yield from _at_import(child)


def caches_hold_no_translated_sentence(repository: Repository) -> Iterator[Violation]:
    """A cache is shared by sessions of every language, unless the language is part of its key."""
    for source in repository.pages:
        for function in source.nodes:
            if (
                isinstance(function, ast.FunctionDef)
                and any("cache" in ast.unparse(each) for each in function.decorator_list)
                and "spoken" not in {argument.arg for argument in function.args.args}
            ):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and name_of(call.func) in LOOKED_UP:
                        yield source.violation(call.lineno, "a cache holds this sentence")


def paragraphs_and_their_uses_match(repository: Repository) -> Iterator[Violation]:
    """Each text of a content file is used somewhere, and each that is used is there."""
    there = {
        function: {
            f"{path.stem}/{found[1]}": (path.relative_to(repository.root).as_posix(), line)
            for path in sorted((repository.root / folder).glob("*.md"))
            for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if (found := re.fullmatch(r"## (.+)", text))
        }
        for function, folder in PARAGRAPHS.items()
    }
    used = {function: set[str]() for function in PARAGRAPHS}
    for source in repository.app:
        for call in source.calls:
            function = call.func.id if isinstance(call.func, ast.Name) else ""
            if function in PARAGRAPHS and call.args and (key := _key(call.args[0], source)):
                keys = {each for each in there[function] if re.fullmatch(key, each)}
                used[function] |= keys
                if not keys:
                    yield source.violation(call.lineno, f"there is no text {key}")
    for function, places in there.items():
        for key in sorted(places.keys() - used[function]):
            yield Violation(*places[key], f"nothing uses the text {key}")


_READERS = {"pages/i18n.py", "tfm_core/sentences.py"}
"""Where a name of any text is put together."""


def _key(node: ast.expr, source: Source) -> str:
    """Return a pattern of the names of texts that an argument may be."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    if isinstance(node, ast.JoinedStr) and source.path not in _READERS:
        return "".join(
            re.escape(str(each.value)) if isinstance(each, ast.Constant) else "[a-z0-9_-]+"
            for each in node.values
        )
    return ""


def words_of_records_are_marked(repository: Repository) -> Iterator[Violation]:
    """What pages translate through a variable, as in ``_(step.title)``, is in the catalogue.

    An extractor reads literals only: a label that is not marked with ``N_`` where it is written
    would stay English for ever, and nothing would say so.
    """
    known = NAMES | {
        text
        for message in translation.messages(repository.root)
        for text in ((message,) if isinstance(message, str) else message)
    }
    arguments = _arguments(repository.core)
    for source in repository.core:
        for node in source.nodes:
            values: list[tuple[str, ast.expr]] = []
            if isinstance(node, ast.Call) and (name := name_of(node.func)) in arguments:
                values = [(each.arg or "", each.value) for each in node.keywords]
                values += zip(arguments[name], node.args, strict=False)
            elif isinstance(node, ast.Call) and name == "Field":
                drawn = [each for each in node.keywords if each.arg in {"title", "description"}]
                values = [("label", each.value) for each in drawn]
            elif isinstance(node, ast.ClassDef):
                values = [(name, value) for name, value in _fields(node) if value is not None]
            for field, value in values:
                if field in WORDS:
                    for text in translation.literals(value):
                        if text not in known:
                            yield source.violation(value.lineno, f"not marked with N_: {text}")


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, each.value


def _arguments(sources: list[Source]) -> dict[str, list[str]]:
    """Return the names of the arguments of every record, and of what makes a setting."""
    classes, made = dict[str, ast.ClassDef](), dict[str, list[str]]()
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
            elif isinstance(node, ast.FunctionDef) and source.path.startswith(
                "tfm_core/choices/config/"
            ):
                made[node.name] = [each.arg for each in node.args.args]

    def of(name: str, seen: tuple[str, ...] = ()) -> list[str]:
        if name not in classes or name in seen:
            return []
        above = [each for base in classes[name].bases for each in of(name_of(base), (*seen, name))]
        return list(dict.fromkeys([*above, *(field for field, _ in _fields(classes[name]))]))

    return made | {name: of(name) for name in classes}


def languages_are_whole(repository: Repository) -> Iterator[Violation]:
    """Every language that is there has each message with its placeholders, and the app's file."""
    for language in translation.shipped(repository.root):
        for problem in translation.problems(language, repository.root, repository.root):
            yield Violation(problem.where, 1, problem.what)
        folder = translation.folder(language, repository.root)
        made = translation.compiled(translation.read(language, repository.root))
        there = (folder / "pages.mo").read_bytes()
        if translation.content(there) != translation.content(made):
            where = (folder / "pages.mo").relative_to(repository.root).as_posix()
            yield Violation(where, 1, f"run: python -m tests.translation compile {language}")


def korean_has_none_of_its_faults(repository: Repository) -> Iterator[Violation]:
    """No Korean text has what gives it away as translated: ``FAULTS``."""
    texts = dict[tuple[str, int], str]()
    for pattern in ("README.ko.md", *(f"{part}/ko/**/*.md" for part in translation.CONTENT)):
        for path in sorted(repository.root.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                texts[path.relative_to(repository.root).as_posix(), number] = line
    for entry in translation.read("ko", repository.root):
        texts["pages/locale/ko/LC_MESSAGES/pages.po", entry.lineno or 1] = str(entry.string)
    for (where, number), text in texts.items():
        for pattern, instead in FAULTS.items():
            if found := re.search(pattern, text):
                yield Violation(where, number, f"{found[0]}: write {instead}")


def korean_readme_has_commands_and_links_of_the_english_one(
    repository: Repository,
) -> Iterator[Violation]:
    """The Korean README has the commands and links of the English one."""
    english, korean = repository.text("README.md"), repository.text("README.ko.md")
    for pattern in (r"```sh\n(.*?)```", r"\]\((docs/[^)]*|C[A-Z]+\.md)\)"):
        wanted = Counter(re.findall(pattern, english, re.DOTALL))
        if not wanted:
            yield Violation("README.md", 1, f"nothing like {pattern}")
        there = Counter(re.findall(pattern, korean, re.DOTALL))
        for found in wanted - there:
            line = line_of(english, english.index(found))
            yield Violation("README.md", line, "this is not in README.ko.md")
        for found in there - wanted:
            line = line_of(korean, korean.index(found))
            yield Violation("README.ko.md", line, "this is not in README.md")


CHECKS = (
    no_sentence_is_translated_at_import,
    caches_hold_no_translated_sentence,
    paragraphs_and_their_uses_match,
    words_of_records_are_marked,
    languages_are_whole,
    korean_has_none_of_its_faults,
    korean_readme_has_commands_and_links_of_the_english_one,
)
