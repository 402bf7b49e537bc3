"""What the host of a server decides: every ``TFM_`` variable of the environment that bounds it.

They are read here and nowhere else; docs/settings.md says what each one means. A value that cannot
be read is one sentence, which the app and the command line say before they begin.
"""

from tfm_core.settings.decided import OTHERS, VARIABLES, Settings, checked, read, unknown
from tfm_core.settings.values import size

__all__ = ["OTHERS", "VARIABLES", "Settings", "checked", "read", "size", "unknown"]
