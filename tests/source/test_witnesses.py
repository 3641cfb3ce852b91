"""By whose word a row is wrong: Connect's where the ingest observes it, else the slot's; not a late one."""

from __future__ import annotations

from dataclasses import replace

from shelf import ROWS, WRONG, settled  # type: ignore[import-not-found]

from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations
from cdc_lakehouse.preflight.source import source_finding


def test_without_the_connectors_word_nothing_is_certain(items):
    items.sql("DELETE FROM items WHERE id = 1", "INSERT INTO items VALUES (1, 'a')")
    items.silver(WRONG)
    items.verify()
    items.kafka_end += 10
    items.verify()
    items.silver(WRONG)

    assert items.verdict() == "open"


def test_a_slot_that_nobody_reads_says_nothing(items):
    """So it is while a connector takes its first snapshot of a source where nothing happens."""
    items.connector.stop()
    items.silver(WRONG)
    items.verify()
    items.verify()

    assert items.verdict() == "open"


def test_a_silver_that_has_not_read_up_to_the_mark_may_still_bring_it(items):
    items.sql("DELETE FROM items WHERE id = 1", "INSERT INTO items VALUES (1, 'a')")
    items.silver(WRONG)
    items.verify()
    items.deliver()
    items.verify()
    items.silver(WRONG, read_to=items.kafka_end - 1)

    assert items.verdict() == "open"


def test_what_the_ingest_observed_is_enough(items):
    """No slot has to say anything: nobody reads it here."""
    items.connector.stop()
    items.silver(WRONG)
    items.verify()
    items.observe()
    items.silver(WRONG)
    found = items.verify().verification

    assert (found["verdict"], found["witnesses"]) == ("different", ["connect"])


def test_an_observation_that_silver_has_not_read_settles_nothing(items):
    items.connector.stop()
    items.silver(WRONG)
    items.verify()
    items.kafka_end += 10
    items.observe()
    items.silver(WRONG, read_to=items.kafka_end - 1)

    assert items.verdict() == "open"


def test_a_slot_ahead_of_what_connect_has_committed_does_not_make_a_late_row_wrong(items):
    """One partition takes no records; another one's are acknowledged, and the slot has the last position."""
    items.observe(up_to="0/1")
    items.sql("INSERT INTO items VALUES (4, 'late')")
    items.silver(ROWS)

    verdicts = []
    for _ in range(3):
        verdicts.append(items.verdict())
        items.deliver()
        items.silver(ROWS)
        items.observe(up_to="0/1")

    assert verdicts == ["open"] * 3


def test_an_observation_of_another_source_says_nothing(items):
    """A restored copy at another address has positions of its own."""
    items.connector.stop()
    items.silver(WRONG)
    items.verify()
    items.observe()
    uri = items.lake.confirmations(items.table().group)
    write_confirmations(uri, replace(read_confirmations(uri), address="elsewhere:5432/shop"))
    items.silver(WRONG)

    assert items.verdict() == "open"


def test_a_log_that_went_back_makes_no_late_row_wrong(items):
    """A standby took over that lacked some of it; its connector is still to come."""
    items.observe(up_to="7F/0")
    items.silver(ROWS)
    items.connector.stop()
    items.sql("INSERT INTO items VALUES (4, 'late')")
    first = items.verdict()
    items.silver(ROWS)

    assert (first, items.verdict()) == ("open", "open")


def test_a_table_that_is_observed_in_another_epoch_does_not_ask_the_slot(items):
    """Bronze opened an epoch that silver has no record of yet."""
    items.observe(up_to="0/1", epoch=1)
    items.sql("INSERT INTO items VALUES (4, 'late')")

    verdicts = []
    for _ in range(3):
        items.silver(ROWS)
        verdicts.append(items.verdict())
        items.deliver()

    assert verdicts == ["open"] * 3


def test_what_another_epoch_saw_serves_no_look(items):
    items.observe(up_to="0/1")
    items.silver(WRONG)
    items.verify()
    items.observe(epoch=1)
    items.silver(WRONG)

    assert items.verdict() == "open"


def test_the_slot_speaks_again_where_nobody_observes_any_more(items):
    items.observe(up_to="0/1")
    items.offsets_topic = None
    found = settled(items, columns=WRONG).verification

    assert (found["verdict"], found["witnesses"]) == ("different", ["slot"])


def test_the_preflight_asks_for_the_topic_of_offsets_and_names_the_slots(items):
    connection = items.verification().database.named
    read = source_finding(connection, {})
    items.connector.stop()
    unread = source_finding(connection, {})

    assert read.sentence.endswith("/shop, slots shop")
    assert unread.sentence.endswith("/shop, slots shop (nobody reads it)")
    assert all("`offsets_topic`" in each.advice for each in (read, unread))
    assert "stay open" in unread.advice


def test_the_oldest_observation_that_serves_is_the_one_to_wait_for(items):
    items.connector.stop()
    items.silver(WRONG)
    items.verify()
    items.observe()
    read = items.kafka_end
    items.kafka_end += 10
    items.observe()
    items.silver(WRONG, read_to=read)

    assert items.verdict() == "different"
