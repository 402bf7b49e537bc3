from tests.runs.conftest import end, store, whole

__all__ = ["end", "store", "whole"]
