"""Runs in a store that several servers share: any fsspec address, set by ``TFM_RUNS_URL``.

Everything is read and written in the folder of runs. A mirror keeps it and the store alike: whoever
trains a run publishes it (``publish``), each server fetches what others published (``follow``), and
a server that wants to resume another's run takes it over (``takeover``). ``docs/storage.md`` says
what lies where, and what it costs.
"""
