"""What stands beside silver outlives its folder: nothing of an earlier life is taken for one of this."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from people import change, merged, people  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE
from cdc_lakehouse.errors import HistoryShapeChangedError, SupersededError
from cdc_lakehouse.lake.steps import standing_of
from cdc_lakehouse.silver import applying
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table

STANDING_OF = "cdc_lakehouse.silver.writing.tombstones.standing_of"
PLAIN = people(history=True)
GONE = [change(0, 1, "EU", op="c", big="one"), change(1, 2, "EU", op="c", big="two"), change(2, 2, op="d")]
MASKS = {
    "masked": {"mask": {"region": "hash"}},
    "hashed key": {"mask": {"id": "hash"}},
    "renamed key": {"rename": {"id": "person"}},
}


@pytest.fixture(autouse=True)
def secret(monkeypatch) -> None:
    know_secret(monkeypatch, "a secret that nobody may ever read")


def know_secret(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    connection = {"extra": {"root": "file:///lake", "mask_secret": text}}
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps(connection))


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    return merged(Chain(engine, root=tmp_path_factory.mktemp("lives").as_uri()), PLAIN, GONE)


@pytest.fixture
def chain(template: Chain, tmp_path: Path) -> Chain:
    """Silver, a history and tombstones: a row, and one that was deleted."""
    return template.copied_to(tmp_path)


def forget(chain: Chain, uri: str) -> None:
    shutil.rmtree(Path(urlsplit(uri).path))


def deleted(chain: Chain, key: str = "id") -> list[Any]:
    return [row[key] for row in chain.rows(chain.lake.tombstones("people"), key)]


def task_of(chain: Chain, table: Table) -> MergeTask:
    found = look_at(chain.application(table), table)
    assert isinstance(found, MergeTask)
    return found


@pytest.mark.parametrize("columns", MASKS.values(), ids=MASKS)
def test_a_history_by_other_settings_stops_a_silver_that_is_made_anew(columns, chain):
    forget(chain, chain.lake.silver("people"))

    with pytest.raises(HistoryShapeChangedError) as caught:
        chain.merge(people(history=True, columns=columns))

    assert caught.value.changed == ("region" if "region" in str(columns) else "id")
    assert not Path(urlsplit(chain.lake.silver("people")).path).exists()


def test_a_history_by_another_secret_stops_a_silver_that_is_made_anew(chain, monkeypatch):
    table = people(history=True, columns=MASKS["masked"])
    chain.forget_silver(table)
    chain.merge(table)
    forget(chain, chain.lake.silver("people"))
    know_secret(monkeypatch, "another secret that nobody may read")

    with pytest.raises(HistoryShapeChangedError) as caught:
        chain.merge(table)

    assert caught.value.changed == "the secret of the masks"


def test_a_history_by_the_same_settings_outlives_its_silver(chain):
    before = chain.history(PLAIN)
    forget(chain, chain.lake.silver("people"))

    chain.merge(PLAIN)

    assert chain.history(PLAIN) == before


@pytest.mark.parametrize("columns", MASKS.values(), ids=MASKS)
def test_both_are_made_anew_by_other_settings_once_both_folders_are_gone(columns, chain):
    table = people(history=True, columns=columns)
    chain.forget_silver(table)

    chain.merge(table)

    assert len(chain.history(table)) == 2
    assert len(chain.silver(table)) == 1


@pytest.mark.parametrize(("columns", "key"), [(MASKS["hashed key"], "id"), (MASKS["renamed key"], "person")])
def test_tombstones_of_another_key_go_with_the_life_that_they_were_of(columns, key, chain):
    table = people(columns=columns)
    forget(chain, chain.lake.silver("people"))
    chain.merge(table)
    chain.ingest(table, [change(3, 1, op="d")])

    chain.merge(table)

    assert chain.silver(table) == []
    assert len(deleted(chain, key)) == 2


def killed_behind_the_creation(chain: Chain, table: Table) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(applying, "life_of", killed)
        with pytest.raises(KeyboardInterrupt):
            chain.merge(table)


@pytest.mark.parametrize("table", [people(), people(deletes="soft")], ids=["hard", "soft"])
def test_tombstones_of_an_earlier_life_go_though_an_attempt_was_killed_behind_the_creation(table, chain):
    chain.sql("UPDATE {t} SET id = 77", chain.lake.tombstones("people"))
    forget(chain, chain.lake.silver("people"))
    killed_behind_the_creation(chain, table)

    chain.merge(table)

    assert deleted(chain) == ([2] if table.deletes == "hard" else [])


def test_a_history_is_cut_anew_though_an_attempt_was_killed_behind_the_creation_of_silver(chain):
    chain.sql("UPDATE {t} SET region = 'by hand' WHERE id = 1", chain.lake.history("people"))
    forget(chain, chain.lake.silver("people"))
    killed_behind_the_creation(chain, PLAIN)

    chain.merge(PLAIN)

    assert [row["region"] for row in chain.history(PLAIN)] == ["EU", "EU"]


def test_an_attempt_that_was_overtaken_before_it_buries_takes_no_tombstone_away(chain, monkeypatch):
    table = people()
    forget(chain, chain.lake.silver("people"))
    stale = task_of(chain, table)

    def overtaken(uri: str) -> Any:
        read = standing_of(uri)
        monkeypatch.setattr(STANDING_OF, standing_of)
        chain.merge(table)
        chain.ingest(table, [change(3, 1, op="d")])
        chain.merge(table)
        return read

    monkeypatch.setattr(STANDING_OF, overtaken)

    with pytest.raises(SupersededError):
        merge_table(chain.application(table), stale)

    assert sorted(deleted(chain)) == [1, 2]
