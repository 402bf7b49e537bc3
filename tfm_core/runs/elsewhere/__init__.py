"""Runs in a store that several servers share: any address of fsspec, named by ``TFM_RUNS_URL``.

The folder of runs stays where everything is read and written. Beside it a mirror works: who trains
a run publishes it as it goes (``publish``), each server fetches what the others published
(``follow``), and one that wants to go on with another's run takes it over (``takeover``).
``docs/storage.md`` says what lies where, and what it costs.
"""
