"""A training loop in another process is watched on Train while it runs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.browser.tab import LAST_STEP

pytestmark = pytest.mark.browser

LOOP = """
import sys
import torch
import torch.nn.functional as F
import tfm_core
from tests.looking.loops import Writer, named, probe

model, ids = Writer(), probe()
learner = torch.optim.SGD(model.parameters(), 0.5)
with tfm_core.look.training(
    model, probe=ids, tokens=named(ids), every=5, steps=30, name="Elsewhere"
) as run:
    print(run.run.id, flush=True)
    for n_steps in sys.stdin:  # as many as the test asks for
        for _step in range(int(n_steps)):
            loss = F.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:])
            learner.zero_grad()
            loss.backward()
            learner.step()
            run.step(loss)
"""


@pytest.fixture
def loop(server: AppServer) -> Iterator[tuple[str, Callable[[int], None]]]:
    """The id of a run that another program trains, and what asks it for steps; 0 ends it."""
    env = {**os.environ, "TFM_RUNS_DIR": str(server.store.root)}
    process = subprocess.Popen(
        [sys.executable, "-c", LOOP], env=env, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def train(n_steps: int) -> None:
        assert process.stdin is not None
        if n_steps:
            print(n_steps, file=process.stdin, flush=True)
        else:
            process.stdin.close()

    yield process.stdout.readline().strip(), train
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()


def test_the_curve_and_the_maps_grow_while_the_page_is_open(
    open_tab: OpenTab, loop: tuple[str, Callable[[int], None]]
) -> None:
    run_id, train = loop
    tab = open_tab(f"train?run={run_id}")
    expect(tab.main.locator(".stage .head")).to_have_count(6)
    for n_steps, step in ((10, 10), (20, 30)):
        train(n_steps)
        tab.await_plotly("loss", f"{LAST_STEP} >= arg", step)
        tab.await_step(step)
    train(0)
    expect(tab.state("Finished")).to_be_visible()
    assert not tab.button("Stop").count()
