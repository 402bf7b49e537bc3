"""A lesson as a SCORM 1.2 package: one page that frames the lesson and reports its score.

A learning platform serves the page from its own address, so the page can talk to the platform
(``API``), and to the app's frame by messages, of which each side checks the origin. ADL, SCORM 1.2
Content Aggregation Model, section 2.3, and Run-Time Environment, section 3.
"""

from __future__ import annotations

import io
import json
import zipfile
from string import Template
from urllib.parse import urlencode, urlsplit
from xml.sax.saxutils import escape, quoteattr

from tfm_core.lessons.lesson import ENGLISH, Lesson
from tfm_core.sentences import StudentError

MESSAGE = "tfm-lesson"
"""The type of the message from the app's frame."""
_DATE = (1980, 1, 1, 0, 0, 0)  # the same lesson gives the same file
_MAX_TITLE = 200

_MANIFEST = Template("""\
<?xml version="1.0" encoding="UTF-8"?>
<manifest identifier=$identifier version="1.0"
    xmlns="http://www.imsproject.org/xsd/imscp_rootv1p1p2"
    xmlns:adlcp="http://www.adlnet.org/xsd/adlcp_rootv1p2">
  <metadata>
    <schema>ADL SCORM</schema>
    <schemaversion>1.2</schemaversion>
  </metadata>
  <organizations default="lessons">
    <organization identifier="lessons">
      <title>$title</title>
      <item identifier="lesson" identifierref="page">
        <title>$title</title>
        <adlcp:masteryscore>100</adlcp:masteryscore>
      </item>
    </organization>
  </organizations>
  <resources>
    <resource identifier="page" type="webcontent" adlcp:scormtype="sco" href="index.html">
      <file href="index.html"/>
    </resource>
  </resources>
</manifest>
""")

_PAGE = Template("""\
<!DOCTYPE html>
<html lang=$language>
<head>
<meta charset="utf-8">
<title>$title</title>
<style>
html, body { margin: 0; height: 100% }
iframe { border: 0; width: 100%; height: 100%; display: block }
</style>
</head>
<body>
<iframe id="lesson" title=$name allow="clipboard-write; local-network-access"></iframe>
<script>
"use strict";
const LESSON = $lesson, ADDRESS = $address, ORIGIN = $origin, TYPE = $type;
const began = Date.now();
let platform = null, isOver = false;

function find(start) {
  let at = start;
  for (let depth = 0; at && depth < 12; depth += 1) {
    try { if (at.API) return at.API; } catch { return null; }
    if (at === at.parent) break;
    at = at.parent;
  }
  return null;
}

function set(name, value) { if (platform) platform.LMSSetValue(name, String(value)); }

function elapsed() {
  const seconds = Math.floor((Date.now() - began) / 1000);
  const two = (n) => String(n).padStart(2, "0");
  return two(Math.min(9999, Math.floor(seconds / 3600))) + ":" + two(Math.floor(seconds / 60) % 60)
    + ":" + two(seconds % 60);
}

function finish() {
  if (!platform || isOver) return;
  isOver = true;
  set("cmi.core.session_time", elapsed());
  platform.LMSCommit("");
  platform.LMSFinish("");
}

platform = find(window) || (window.opener ? find(window.opener) : null);
if (platform) {
  platform.LMSInitialize("");
  const status = platform.LMSGetValue("cmi.core.lesson_status");
  if (!status || status === "not attempted") set("cmi.core.lesson_status", "incomplete");
  platform.LMSCommit("");
}

const frame = document.getElementById("lesson");
window.addEventListener("message", (event) => {
  if (event.origin !== ORIGIN || event.source !== frame.contentWindow || isOver) return;
  const said = event.data;
  if (!said || said.type !== TYPE || said.lesson !== LESSON) return;
  const solved = Number(said.solved), tasks = Number(said.tasks);
  if (!Number.isInteger(solved) || !Number.isInteger(tasks) || tasks < 1) return;
  if (solved < 0 || solved > tasks) return;
  set("cmi.core.score.min", 0);
  set("cmi.core.score.max", 100);
  set("cmi.core.score.raw", Math.round(100 * solved / tasks));
  set("cmi.core.lesson_status", solved === tasks ? "passed" : "incomplete");
  set("cmi.core.session_time", elapsed());
  if (platform) platform.LMSCommit("");
});
frame.src = ADDRESS + "&frame=" + encodeURIComponent(window.location.origin);
window.addEventListener("pagehide", finish);
window.addEventListener("beforeunload", finish);
</script>
</body>
</html>
""")


def package(lesson: Lesson, address: str, language: str = ENGLISH) -> bytes:
    """Return a lesson as the zip of a SCORM 1.2 package.

    address: of the app, as pupils reach it. language: of the package, and of the app in it; English
    leaves the app to the browser's. Raises StudentError.
    """
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise StudentError("The address of the app must begin with http:// or https://.")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    spoken = language if language in lesson.by_language else ENGLISH
    title = lesson.words(spoken).title[:_MAX_TITLE]
    query = {"lesson": lesson.id, "embed": "true"}
    if language != ENGLISH:
        query["lang"] = language
    manifest = _MANIFEST.substitute(
        identifier=quoteattr(f"lesson-{lesson.id}"), title=escape(title)
    )
    page = _PAGE.substitute(
        language=quoteattr(spoken),
        title=escape(title),
        name=quoteattr(title),
        lesson=_in_script(lesson.id),
        address=_in_script(f"{base}/challenges?{urlencode(query)}"),
        origin=_in_script(origin_of(base)),
        type=_in_script(MESSAGE),
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in (("imsmanifest.xml", manifest), ("index.html", page)):
            file.writestr(zipfile.ZipInfo(name, _DATE), text.encode(), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def origin_of(address: str) -> str:
    """Return the origin of an address as browsers write it: without the usual port."""
    parts = urlsplit(address)
    usual = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _in_script(text: str) -> str:
    """Return a text as a literal of a script in a page, which no text can end."""
    return json.dumps(text).replace("<", "\\u003c").replace("&", "\\u0026")
