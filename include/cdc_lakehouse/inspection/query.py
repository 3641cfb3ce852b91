"""SQL over the lake with DuckDB: the tables that a query names are read, nothing can be changed."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa

from cdc_lakehouse.inspection.catalog import Catalog, NamedTable
from cdc_lakehouse.lake.rows import read_rows

_READS = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.RELATION})
_MISSING = re.compile(r'(?:Table|Schema) with name "?([\w.]+)"? does not exist')
_SHOW_TABLES = re.compile(r"\s*(?:\.tables|show\s+(?:all\s+)?tables)\s*;?\s*", re.IGNORECASE)
_FROM = re.compile(r"\b(?:from|join)\s+([\w.\"]+)", re.IGNORECASE)


class QueryRefusedError(Exception):
    """Its text is a whole sentence for whoever wrote the query."""


class LakeQueries:
    """One DuckDB in memory. Each query reads the tables that it names again, whole: for looking only."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._database = duckdb.connect(":memory:")
        self._database.execute("SET TimeZone = 'UTC'")
        for schema in dict.fromkeys(table.schema for table in catalog.tables):
            self._database.execute(f'CREATE SCHEMA "{schema}"')
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")

    def run(self, query: str) -> pa.Table:
        """The rows. Raises `QueryRefusedError`."""
        if _SHOW_TABLES.fullmatch(query):
            return self.names()
        try:
            statements = self._database.extract_statements(query)
        except duckdb.Error as problem:
            raise QueryRefusedError(_first_line(problem)) from problem
        if len(statements) != 1:
            raise QueryRefusedError("one statement at a time, please")
        if any(statement.type not in _READS for statement in statements):
            raise QueryRefusedError("the lake is read only here: select, describe and explain work")
        loaded = [self._load(table) for table in self.catalog.mentioned(query)]
        try:
            return self._database.sql(statements[0].query).to_arrow_table()
        except duckdb.CatalogException as problem:
            raise QueryRefusedError(self._unknown(problem, query, loaded)) from problem
        except duckdb.Error as problem:
            raise QueryRefusedError(_first_line(problem)) from problem
        finally:
            self._forget()

    def names(self) -> pa.Table:
        """Every name that a query can use."""
        return pa.table({"table": [table.qualified for table in self.catalog.tables]})

    def _load(self, table: NamedTable) -> str | None:
        """The table's name if it exists."""
        rows = read_rows(table.uri)
        if rows is None:
            return None
        arrow = f"{table.schema}/{table.name}"
        self._database.register(arrow, rows)
        view = f'"{table.schema}"."{table.name}"'
        self._database.execute(f'CREATE VIEW {view} AS SELECT * FROM "{arrow}"')  # noqa: S608 - our names
        return table.qualified

    def _forget(self) -> None:
        """The next query sees the newest versions."""
        for table in self.catalog.tables:
            self._database.execute(f'DROP VIEW IF EXISTS "{table.schema}"."{table.name}"')
            self._database.unregister(f"{table.schema}/{table.name}")

    def _unknown(self, problem: duckdb.Error, query: str, loaded: list[str | None]) -> str:
        """Which name is wrong; a table that is known and not there yet is not a wrong name."""
        mentioned = self.catalog.mentioned(query)
        for table, found in zip(mentioned, loaded, strict=True):
            if found is None:
                return f"{table.qualified} has no data yet; run its DAG first, `make demo` does"
        missing = _MISSING.search(str(problem))
        if missing is None:
            return _first_line(problem)
        written = [name.replace('"', "") for name in _FROM.findall(query)]
        name = next((full for full in written if missing[1].lower() in full.lower().split(".")), missing[1])
        close = self.catalog.close_to(name)
        hint = f"did you mean {close}?" if close else "`.tables` lists all"
        return f"there is no table {name}; {hint}"


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0]
