"""Numbers as a person reads them, times as they are said, Markdown that stays text."""

from datetime import UTC, datetime, timedelta

from pages import i18n
from pages.app import show
from pages.app.runs.run_words import STATES
from tfm_core.runs import status
from tfm_core.sentences import loss_words


def test_times_counts_sizes_and_shares_are_words_and_none_reads_shorter():
    for seconds, words in [
        (0, "0.0 s"),
        (0.42, "0.4 s"),
        (9.94, "9.9 s"),
        (9.97, "10 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (7800, "2 h 10 min"),
        (3599.7, "1 h"),
    ]:
        assert show.duration(seconds) == words
    for seconds, words in [
        (0.2, "about 1 s"),
        (8.1, "about 8 s"),
        (16.9, "about 16 s"),
        (43, "about 45 s"),
        (63, "about 1 min"),
        (140, "about 2.5 min"),
        (800, "about 15 min"),
        (4000, "about 1 h"),
        (40_000, "about 11 h"),
    ]:
        assert show.about(seconds) == words
    for n, words in [
        (7, "7"),
        (72_394, "72,394"),
        (999_999, "999,999"),
        (1_234_567, "1.23 M"),
        (7e9, "7 G"),
    ]:
        assert show.count(n) == words
    with i18n.speaking("ko"):
        korean = [show.count(n) for n in (999_999, 1_570_000, 43_747_256, 4_270_000_000)]
    assert korean == ["999,999", "157만", "4,375만", "42.7억"]
    for n_bytes, words in [
        (0, "0 B"),
        (512, "512 B"),
        (3482, "3.4 KiB"),
        (200 * 1024**2, "200 MiB"),
        (2**40, "1.0 TiB"),
    ]:
        assert show.size(n_bytes) == words
    for share, words in [
        (0, "0%"),
        (1, "100%"),
        (0.9996, "99.9%"),
        (0.98249, "98.2%"),
        (0.5, "50.0%"),
    ]:
        assert show.percent(share) == words
    for loss, words in [
        (1.23456, "1.235"),
        (0.1, "0.100"),
        (0.00123, "0.0012"),
        (0.001, "0.0010"),
        (0, "0.000"),
    ]:
        assert loss_words(loss) == words  # as the legend of a run
    units = {"s": 1, "min": 60, "h": 3600}
    texts = [show.rounded(0.3 * 1.07**n) for n in range(200)]
    seconds = [float(text.split()[0]) * units[text.split()[1]] for text in texts]
    assert seconds == sorted(seconds)


def test_ago_becomes_a_date_and_every_state_has_words():
    for age, words in [
        (timedelta(seconds=7), "just now"),
        (timedelta(seconds=-7), "just now"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(hours=31), "31 h ago"),
    ]:
        assert show.ago((datetime.now(UTC) - age).isoformat()) == words
    assert show.ago("2025-03-07T11:13:17+00:00") == "2025-03-07"
    assert set(STATES) == set(status.STATES)


def test_a_time_to_come_is_told_by_the_clock(monkeypatch):
    monkeypatch.setattr(show, "_zone", lambda: UTC)
    noon = datetime.now(UTC).replace(hour=12, minute=30, second=0, microsecond=0)
    assert show.clock(noon.timestamp()) == "12:30"
    assert show.clock((noon + timedelta(days=1)).timestamp()) == "12:30 tomorrow"
    assert show.clock(datetime(2031, 3, 7, 9, 5, tzinfo=UTC).timestamp()) == "2031-03-07 09:05"
