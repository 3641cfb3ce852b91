"""First lines of results that are long to put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

MAINTENANCE_COUNTS = {
    "optimize": ("files_packed", "files_written"),
    "vacuum": ("files_deleted", "bytes_reclaimed", "restated"),
    "clean_checkpoints": ("checkpoints",),
}
"""What a job of maintenance counts, in the order of its headline."""


def maintenance_headline(
    counts: Sequence[Mapping[str, int]],
    *,
    names: Sequence[str],
    statuses: Mapping[str, int],
    nights: int,
    cleaned: Sequence[str],
) -> str:
    """Return `3 of 4 tables maintained: 12 files packed, 1 skipped, for 2 nights at most`.

    `counts` has an entry per table; those in `names` are said, in this order.
    """
    if statuses.get("planned"):
        return f"dry run: {statuses['planned']} of {len(counts)} tables have work"
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    done = [f"{total[name]} {name.replace('_', ' ')}" for name in names if total[name]]
    done += [f"for {nights} nights at most"] if nights > 1 else []
    text = ", ".join([*done, *cleaned]) or "nothing to do"
    return f"{statuses.get('maintained', 0)} of {len(counts)} tables maintained: {text}"
