"""Long tests: a part of some in every test run, all of them with ``TFM_NIGHTLY=1``."""

import os

import pytest

IS_NIGHTLY = os.environ.get("TFM_NIGHTLY") == "1"
only_nightly = pytest.mark.skipif(not IS_NIGHTLY, reason="it runs with TFM_NIGHTLY=1")
