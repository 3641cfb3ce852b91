"""Cut the steps of keys into the versions of their rows: a history (`cdc-semantics` §9).

Each image starts a version, which ends at the next step of the key, or where all rows ended before that. An
image that changes nothing continues the version before it: that keeps its start, and takes the values and the
end of the later image.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.fold.arrays import Bools, Int64s, as_mask, as_numbers, has_operation
from cdc_lakehouse.fold.images import ImageFinder, Images
from cdc_lakehouse.fold.inputs import Ending, StoredVersions
from cdc_lakehouse.fold.key_groups import number_keys
from cdc_lakehouse.fold.places import Places
from cdc_lakehouse.fold.timeline import NONE, Timeline, is_before

_LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class VersionRules:
    columns: TableColumns
    tracked: Sequence[str] | None
    """A version begins where one of these changes. With None every image begins one, except a row that a
    snapshot read unchanged."""
    dropped: Collection[str] = ()
    """Columns that the source does not send any more: a version without their values is not incomplete."""


@dataclass(frozen=True, slots=True)
class CutVersions:
    rows: pa.Table
    """Rows of the history, in the order of their keys and times."""
    open_keys: pa.StructArray
    """Keys that have to be cut again with all events of the keys that they had before."""


def cut_versions(
    timeline: Timeline, endings: Sequence[Ending], stored: StoredVersions, rules: VersionRules
) -> CutVersions:
    """Return the versions of all keys, in their order. `endings` are sorted by place.

    The version of a stored row replaces the open one that the history has of its key. Without stored versions
    the timeline is the whole past of its keys.
    """
    images = ImageFinder(timeline).find_values(_find_live_images(timeline))
    ends = _find_ends(timeline, images.steps, endings)
    values = images.take_rows(rules.columns, images.steps)
    incomplete = images.list_incomplete(rules.columns, dropped=rules.dropped)
    continues = _find_unchanged(images, ends, values, incomplete, rules)
    first = np.flatnonzero(~continues)
    last = np.append(first[1:], len(continues))[: len(first)] - 1
    steps = images.steps[first]
    known = _KnownVersions.of(timeline, stored)
    from_places, from_operations, from_times = _find_starts(timeline, steps, known)
    since = np.maximum(from_times, known.ended[timeline.key[steps]])
    since, until = _make_monotonic(timeline.key[steps], since, ends.times[last], ends.is_open[last])
    to_places = ends.places.take(last)
    rows = pa.table(
        {
            **{name: column.take(pa.array(last)) for name, column in values.items()},
            "_cdc_op": from_operations,
            "_cdc_from": from_places.to_position(),
            "_cdc_to": _null_where(ends.is_open[last], to_places.to_position()),
            "_cdc_from_ts": _to_timestamps(since),
            "_cdc_to_ts": _null_where(ends.is_open[last], _to_timestamps(until)),
            "_cdc_tx_id": from_places.to_tx_ids(),
            "_cdc_to_tx_id": _null_where(ends.is_open[last], to_places.to_tx_ids()),
            "_cdc_incomplete": incomplete.take(pa.array(last)),
        }
    )
    return CutVersions(rows, timeline.take_keys(images.steps[images.is_open]))


def _find_live_images(timeline: Timeline) -> Int64s:
    """Return the steps that are a version of a row; a stored row that is marked as deleted is none."""
    return np.flatnonzero(timeline.is_image & ~timeline.ends_life)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ends of the versions of images. An image that the next one continues has the same end as that."""

    places: Places
    times: Int64s
    is_open: Bools
    """Versions that have not ended; the other two mean nothing there."""
    ends_life: Bools
    """Images after which the row was gone."""


def _find_ends(timeline: Timeline, images: Int64s, endings: Sequence[Ending]) -> _Ends:
    endings_after = np.zeros(len(timeline.key), np.int64)
    for ending in endings:
        endings_after += is_before(ending.place, timeline.places)
    following = np.minimum(images + 1, len(timeline.key) - 1)
    is_last = (following == images) | (timeline.key[following] != timeline.key[images])
    number = len(endings) - endings_after[images]
    limit = np.where(is_last, len(endings), len(endings) - endings_after[following])
    number = _find_first_ending(timeline, endings, number, limit, np.where(is_last, NONE, following))
    has_ending = number < limit
    step_times = _to_microseconds(timeline.take_times(following))
    places, times = timeline.places.take(following), step_times
    if has_ending.any():
        of_endings = Places.of_all([ending.place for ending in endings])
        chosen = np.where(has_ending, number, 0)
        places = Places.choose(has_ending, of_endings.take(chosen), places)
        times = np.where(has_ending, np.array([ending.time for ending in endings])[chosen], times)
    ends_life = has_ending | (~is_last & timeline.ends_life[following])
    return _Ends(places, times, is_open=is_last & ~has_ending, ends_life=ends_life)


def _find_first_ending(
    timeline: Timeline, endings: Sequence[Ending], number: Int64s, limit: Int64s, following: Int64s
) -> Int64s:
    """Return the first ending of each image that ends it, from `number` on; the limit where none does.

    The row of a repeated snapshot ends its predecessor itself: it was not missing from that snapshot. A sweep
    ends only what nothing follows, or what is followed by an event that creates the row: any other event
    shows that the row was still there.
    """
    number = number.copy()
    created = has_operation(timeline.take_operations(following), Operation.CREATE) | (following == NONE)
    phase, tx_ids = timeline.places.fields[1][following], timeline.places.tx_ids[following]
    for place, ending in enumerate(endings):
        at = number == place
        if ending.is_sweep:
            skipped = at & ~created
        elif ending.place.position[1] == 0 and ending.place.tx_id is not None:
            skipped = at & (following != NONE) & (phase == 0) & (tx_ids == ending.place.tx_id)
        else:
            continue
        number[skipped] += 1
    return np.minimum(number, limit)


def _find_unchanged(
    images: Images, ends: _Ends, values: dict[str, pa.Array], incomplete: pa.Array, rules: VersionRules
) -> Bools:
    """Return which images continue the version of the image before them."""
    timeline, steps = images.timeline, images.steps
    continues = np.zeros(len(steps), bool)
    if not len(steps):
        return continues
    continues[1:] = (timeline.key[steps[1:]] == timeline.key[steps[:-1]]) & ~ends.ends_life[:-1]
    if rules.tracked is None:
        is_whole = incomplete.is_null().to_numpy(zero_copy_only=False)
        continues &= has_operation(timeline.take_operations(steps), Operation.READ) & is_whole
        continues[1:] &= is_whole[:-1]
    names = values if rules.tracked is None else rules.tracked
    for name in names:
        later = np.flatnonzero(continues)
        continues[later] = _are_same(
            values[name].take(pa.array(later - 1)), values[name].take(pa.array(later))
        )
    return continues


def _are_same(one: pa.Array, other: pa.Array) -> Bools:
    """Compare element by element. NULL is a value, and so is NaN."""
    if pa.types.is_nested(one.type):
        return np.array([a == b for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)], bool)
    same = as_mask(pc.equal(one, other)) | as_mask(pc.and_(one.is_null(), other.is_null()))
    if pa.types.is_floating(one.type):
        same |= as_mask(pc.and_(pc.is_nan(one), pc.is_nan(other)))
    return same


@dataclass(frozen=True, slots=True)
class _KnownVersions:
    """What the history has of each key of a timeline. The arrays have one item per number of a key."""

    stored: StoredVersions
    open: Int64s
    """The open version of the key, or `NONE`."""
    ended: Int64s
    """The latest time at which a version of the key ended."""

    @classmethod
    def of(cls, timeline: Timeline, stored: StoredVersions) -> _KnownVersions:
        count = int(timeline.key.max(initial=-1)) + 1
        open_version, ended = np.full(count, NONE, np.int64), np.full(count, _LONG_AGO)
        if len(stored):
            names, firsts = [field.name for field in stored.key.type], timeline.firsts
            columns = [
                timeline.take_key(name, firsts).cast(stored.key.type.field(name).type) for name in names
            ]
            key = pa.StructArray.from_arrays(columns, names=names)
            (of_timeline, of_stored), numbers = number_keys(key, stored.key)
            key_of_number = np.full(numbers, NONE, np.int64)
            key_of_number[of_timeline] = timeline.key[firsts]
            keys = key_of_number[of_stored]
            is_open = stored.is_open & (keys != NONE)
            open_version[keys[is_open]] = np.flatnonzero(is_open)
            is_closed = ~stored.is_open & (keys != NONE)
            np.maximum.at(ended, keys[is_closed], _to_microseconds(stored.ends)[is_closed])
        return cls(stored, open_version, ended)


def _find_starts(timeline: Timeline, steps: Int64s, known: _KnownVersions) -> tuple[Places, pa.Array, Int64s]:
    """Return place, operation and time of the starts of versions, for stored rows from the history."""
    places, operations = timeline.places.take(steps), timeline.take_operations(steps)
    times = _to_microseconds(timeline.take_times(steps))
    versions = np.where(timeline.is_stored[steps], known.open[timeline.key[steps]], NONE)
    is_known = versions != NONE
    if is_known.any():
        rows = np.where(is_known, versions, 0)
        places = Places.choose(is_known, known.stored.places.take(rows), places)
        operations = pc.if_else(pa.array(is_known), known.stored.operations.take(pa.array(rows)), operations)
        times = np.where(is_known, _to_microseconds(known.stored.starts)[rows], times)
    return places, operations, times


def _make_monotonic(keys: Int64s, since: Int64s, until: Int64s, is_open: Bools) -> tuple[Int64s, Int64s]:
    """Return times that never run backwards within a key, though those of events do.

    Commit times do between transactions, and rows that a snapshot read have the connector's clock.
    """
    times = np.stack([since, np.where(is_open, _LONG_AGO, until)], axis=1).reshape(-1)
    owners = np.repeat(keys, 2)
    distance = 1
    while distance < len(times):
        same = owners[distance:] == owners[:-distance]
        if not same.any():
            break
        times[distance:] = np.where(same, np.maximum(times[distance:], times[:-distance]), times[distance:])
        distance *= 2
    pairs = times.reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _null_where(mask: Bools, column: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, column.type), column)


def _to_timestamps(times: Int64s) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("us", tz="UTC"))


def _to_microseconds(times: pa.Array) -> Int64s:
    return as_numbers(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
