"""A lesson as a SCORM 1.2 package: its manifest, by the IMS and ADL schemas, and its page."""

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest

from pages.app.lessons.open_lesson import may_frame
from tests.lessons.made import WORDS, written
from tfm_core.cli import main
from tfm_core.lessons import catalogue
from tfm_core.lessons.lesson import read
from tfm_core.lessons.scorm import origin_of, package
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.quick

CP = "{http://www.imsproject.org/xsd/imscp_rootv1p1p2}"
ADL = "{http://www.adlnet.org/xsd/adlcp_rootv1p2}"
APP = "https://app.example.org/here"
CHILDREN = {  # imscp_rootv1p1p2.xsd: the children of each element, in their order
    "manifest": ["metadata", "organizations", "resources"],
    "metadata": ["schema", "schemaversion"],
    "organizations": ["organization"],
    "organization": ["title", "item"],
    "item": ["title", f"{ADL}masteryscore"],
    "resources": ["resource"],
    "resource": ["file"],
}
ATTRIBUTES = {
    "manifest": {"identifier", "version"},
    "organizations": {"default"},
    "organization": {"identifier"},
    "item": {"identifier", "identifierref"},
    "resource": {"identifier", "type", "href", f"{ADL}scormtype"},
    "file": {"href"},
}


def parts(content: bytes) -> tuple[ElementTree.Element, str, list[str]]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.testzip() is None
        manifest = ElementTree.fromstring(file.read("imsmanifest.xml"))
        return manifest, file.read("index.html").decode(), file.namelist()


def test_the_manifest_of_every_lesson_keeps_to_the_schemas() -> None:
    for lesson in catalogue.catalogue().lessons.values():
        manifest, _page, names = parts(package(lesson, APP))
        assert names == ["imsmanifest.xml", "index.html"]
        ids = [one.get("identifier") for one in manifest.iter() if one.get("identifier")]
        assert len(set(ids)) == len(ids)  # xsd:ID
        assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", name or "") for name in ids)
        for element in manifest.iter():
            name = element.tag.removeprefix(CP)
            children = [child.tag.removeprefix(CP) for child in element]
            assert children == CHILDREN.get(name, [])
            assert set(element.attrib) == ATTRIBUTES.get(name, set())
        assert manifest.findtext(f"{CP}metadata/{CP}schema") == "ADL SCORM"
        assert manifest.findtext(f"{CP}metadata/{CP}schemaversion") == "1.2"
        (organization,) = manifest.iter(f"{CP}organization")
        (organizations,) = manifest.iter(f"{CP}organizations")
        assert organizations.get("default") == organization.get("identifier")
        (item,), (resource,) = manifest.iter(f"{CP}item"), manifest.iter(f"{CP}resource")
        assert item.get("identifierref") == resource.get("identifier")
        assert item.findtext(f"{CP}title") == lesson.words().title
        assert resource.get(f"{ADL}scormtype") == "sco"
        assert resource.get("type") == "webcontent"
        (file,) = manifest.iter(f"{CP}file")
        assert resource.get("href") == file.get("href") == "index.html"


def test_the_page_frames_the_lesson_and_titles_stay_text(tmp_path: Path) -> None:
    title = """</script><b>&"x' ]]>"""
    lesson = read(written(tmp_path, words=WORDS.replace("# Width", f"# {title}")))
    manifest, page, _names = parts(package(lesson, APP))
    assert manifest.findtext(f".//{CP}item/{CP}title") == title
    assert page.count("</script>") == 1
    assert "<b>" not in page
    _manifest, page, _names = parts(package(read(written(tmp_path)), f"{APP}:443/x/"))
    assert 'ORIGIN = "https://app.example.org"' in page
    assert "/x/challenges?lesson=width\\u0026embed=true" in page
    assert "event.origin !== ORIGIN || event.source !== frame.contentWindow" in page
    assert '"*"' not in page


def test_a_package_is_in_its_language_and_the_same_each_time(tmp_path: Path) -> None:
    lesson = next(iter(catalogue.catalogue().lessons.values()))
    for language, rest in (("en", '"'), ("ko", '\\u0026lang=ko"')):
        manifest, page, _names = parts(package(lesson, APP, language))
        title = lesson.words(language).title
        assert f'<html lang="{language}">' in page
        assert manifest.findtext(f".//{CP}item/{CP}title") == title
        assert f"<title>{escape(title)}</title>" in page
        assert f"\\u0026embed=true{rest}" in page
    _manifest, page, _names = parts(package(lesson, APP, "xx"))
    assert '<html lang="en">' in page
    lesson = read(written(tmp_path))
    assert package(lesson, APP) == package(lesson, APP)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://a.org/x?y", "https://a.org"),
        ("https://A.org:443", "https://a.org"),
        ("http://a.org:8501/", "http://a.org:8501"),
        ("http://[::1]:8501/", "http://[::1]:8501"),
        ("https://user:word@a.org", "https://a.org"),
    ],
)
def test_an_origin_is_written_as_browsers_do(address: str, origin: str) -> None:
    assert origin_of(address) == origin


def test_only_a_site_that_may_frame_the_app_gets_a_score() -> None:
    own = "https://app.example.org"
    moodle = "https://moodle.example.org"
    for ancestors, may in [
        (None, True),
        ("'none'", False),
        ("'self'", False),
        ("'self' https://moodle.example.org", True),
        ("https://*.example.org", True),
        ("https://*.moodle.example.org", False),
        ("http://moodle.example.org", False),
        ("https:", True),
        ("http:", False),
        ("*", True),
        ("https://moodle.example.org:8443", False),
        ("https://moodle.example.org:*", True),
    ]:
        assert may_frame(moodle, ancestors, own) == may, ancestors
    assert may_frame(own, "'self'", own)
    assert may_frame("https://moodle.example.org:8443", "https://moodle.example.org:8443", own)
    for nonsense in ("*", "null", "javascript:alert(1)", "https://a.org/x", "https://a b", ""):
        assert not may_frame(nonsense, None, own)


def test_the_command_writes_the_package_and_refuses_no_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "lesson.zip"
    assert main(["lesson", "scorm", "name-the-bug", "--address", APP, "--out", str(out)]) == 0
    assert parts(out.read_bytes())[2] == ["imsmanifest.xml", "index.html"]
    assert main(["lesson", "scorm", "none", "--address", APP]) == 2
    for address in (
        "here",
        "https://a.org:0",
        "https://a.org:seven",
        "https://[::1",
        "https:///here",
    ):
        assert main(["lesson", "scorm", "name-the-bug", "--address", address]) == 2
    assert "must begin with http" in capsys.readouterr().err
    with pytest.raises(StudentError, match="address"):
        package(read(written(tmp_path)), "")
