"""A figure is made while another thread imports pandas."""

import subprocess
import sys

SCRIPT = """
import sys, types
from importlib.machinery import ModuleSpec
import app
begun = types.ModuleType("pandas")
begun.__spec__ = ModuleSpec("pandas", None)
begun.__spec__._initializing = True
sys.modules["pandas"] = begun
import plotly.graph_objects as go
figure = go.Figure(go.Scatter(y=[1, 2], hovertemplate="%{y}", name="a"))
assert list(figure.data[0].y) == [1, 2]
figure.to_json()
"""


def test_a_figure_is_made_while_pandas_is_being_imported() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
