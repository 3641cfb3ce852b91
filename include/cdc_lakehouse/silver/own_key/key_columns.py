"""Which columns of bronze's rows are silver's key, where the table says so (decision 0034): no Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium.columns import Column, TableColumns, may_be_key
from cdc_lakehouse.errors import InvalidShapeError
from cdc_lakehouse.silver.columns.shape import refuse_unknown


@dataclass(frozen=True, slots=True)
class OwnKey:
    bronze: TableColumns
    key: tuple[Column, ...]
    """Of the row, as bronze has them."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.key)

    @property
    def is_sent(self) -> bool:
        """Whether every event has it, in its message key."""
        return {*self.names} <= self._of_message

    @property
    def beside_message_key(self) -> tuple[Column, ...]:
        """Columns of the row that no message key tells."""
        return tuple(column for column in self.bronze.row if column.name not in self._of_message)

    @property
    def columns(self) -> TableColumns:
        """Bronze's, with this key."""
        return replace(self.bronze, key=self.key)

    @property
    def _of_message(self) -> set[str]:
        return {column.name for column in self.bronze.key}


def own_key(columns: TableColumns, table: Table) -> OwnKey | None:
    """None where Kafka's message key is silver's, as it is without a word.

    Raises for columns that bronze does not have, though they may come later, and for those that cannot be a
    key. `columns` are bronze's, while `table` has silver's names.
    """
    if table.key is None:
        return None
    names = tuple(table.columns.source_of(name) or name for name in table.key)
    for name in names:
        refuse_unknown(name, columns, setting="key", table=table.name)
    row = {column.name: column for column in columns.row}
    key = tuple(row[name] for name in names)
    for column in key:
        if not may_be_key(column.type):
            problem = f"{column.name} is {column.type}, which does not tell rows apart reliably"
            raise InvalidShapeError(table=table.name, setting="key", problem=problem)
    is_the_messages = {*names} == {column.name for column in columns.key}
    return None if is_the_messages else OwnKey(columns, key)
