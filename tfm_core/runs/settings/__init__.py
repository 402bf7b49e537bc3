"""What the host of a server decides: every ``TFM_`` variable of the environment that bounds it.

They are read here and nowhere else. ``VARIABLES`` says of each what it means; the README's table is
held to it. A value that cannot be read is one sentence, which the app and the command line say
before they begin.
"""

from tfm_core.runs.settings.decided import BackendName, Settings
from tfm_core.runs.settings.reading import checked, read
from tfm_core.runs.settings.values import size
from tfm_core.runs.settings.variables import VARIABLES

__all__ = ["VARIABLES", "BackendName", "Settings", "checked", "read", "size"]
