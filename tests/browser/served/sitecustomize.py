"""Read by Python at the start of a test server and of its workers (``PYTHONPATH``).

A server answers ``Tab.settle`` when the session is settled. A worker trains runs of
``TFM_TEST_SLOW_STEPS`` steps and more at 20 steps a second at most: a page that watches one draws
as often on every machine, and nobody waits for the processor. ``TFM_TEST_WARM_WORKERS`` and
``TFM_TEST_LANGUAGES_DIR`` replace constants of the app.
"""

import os
import sys
import time
from pathlib import Path

PACE_SECONDS = 0.05


def _tell_when_settled():
    """Answer a request whose id begins with ``settled`` when no script runs or is about to.

    Requests are handled in the order in which a page sends them, and a session is settled when
    what it has to say has been sent, too.
    """
    import asyncio

    from streamlit.runtime.app_session import AppSession

    begin, answer = AppSession.__init__, AppSession._handle_file_urls_request
    waiting = set()

    def __init__(self, *arguments, **options):
        begin(self, *arguments, **options)
        self.track_settling()

    async def answer_settled(self, request):
        await self.wait_until_settled()
        answer(self, request)

    def _handle_file_urls_request(self, request):
        if not request.request_id.startswith("settled"):
            answer(self, request)
            return
        task = asyncio.create_task(answer_settled(self, request))
        waiting.add(task)
        task.add_done_callback(waiting.discard)

    AppSession.__init__ = __init__
    AppSession._handle_file_urls_request = _handle_file_urls_request


def _train_slowly(least_steps):
    from tfm_core.training import loop

    update = loop.update

    def slow_update(trainer):
        if trainer.experiment.training.steps >= least_steps:
            time.sleep(PACE_SECONDS)
        return update(trainer)

    loop.update = slow_update


def _keep_warm(n_workers):
    """Let so many workers wait for runs, whatever memory there is."""
    if n_workers is not None:
        from tfm_core.runs.queue import local_workers

        local_workers.default_size = lambda: int(n_workers)


def _speak(folder):
    """Read languages from a folder, too."""
    if folder is not None:
        from tfm_core import languages

        languages.FOLDER = Path(folder)


def _read_the_next():
    """Read the file of this name that this one hides."""
    for folder in sys.path:
        path = Path(folder or ".", "sitecustomize.py").resolve()
        if path.is_file() and path != Path(__file__).resolve():
            exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"__file__": str(path)})
            return


_read_the_next()
_speak(os.environ.get("TFM_TEST_LANGUAGES_DIR"))
if "streamlit" in sys.orig_argv:
    _tell_when_settled()
    _keep_warm(os.environ.get("TFM_TEST_WARM_WORKERS"))
elif "tfm_core.runs.process.worker" in sys.orig_argv:
    _train_slowly(int(os.environ["TFM_TEST_SLOW_STEPS"]))
