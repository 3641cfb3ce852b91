"""Fold the change events of many keys to their rows and versions: Arrow in, Arrow out, no I/O and no Spark.

`inputs` holds the events and what silver has of their keys. `timeline` sorts the steps of every key into the
order of the source. `images` finds the step that supplies each value. From that, `folded_keys` makes the rows
of silver and `row_versions` the versions of a history.
"""
