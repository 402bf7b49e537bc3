"""``python -m tfm_core``: see tfm_core.cli."""

import sys

from tfm_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
