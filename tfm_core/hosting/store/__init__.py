"""Runs in a store that servers share: any fsspec address, set by ``TFM_RUNS_URL``.

Everything is read and written in the folder of runs, which a mirror keeps in sync with the store:
the process that trains a run uploads it (``upload``), other servers fetch it (``follow``), and a
server that wants to resume it takes it over (``shared_store``). See ``docs/storage.md``.
"""
