"""Long random stress tests: a part of each in every test run, all of it with ``TFM_NIGHTLY=1``."""

import os

IS_NIGHTLY = os.environ.get("TFM_NIGHTLY") == "1"
