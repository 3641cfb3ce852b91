"""The error tree is complete: a new class without code, exit code or line in the drawing fails here."""

from __future__ import annotations

import re
from dataclasses import fields
from string import Formatter

import pytest

from cdc_lakehouse import errors
from cdc_lakehouse.contract import ExitCode, TableError
from cdc_lakehouse.errors import (
    ConfigError,
    DataError,
    LakehouseError,
    OffsetsLostError,
    RetryableError,
)

BRANCHES = {RetryableError: ExitCode.RETRY, ConfigError: ExitCode.CONFIG, DataError: ExitCode.DATA}


def descendants(cls: type[LakehouseError]) -> list[type[LakehouseError]]:
    return [found for child in cls.__subclasses__() for found in (child, *descendants(child))]


LEAVES = [
    cls
    for cls in descendants(LakehouseError)
    if cls not in BRANCHES and cls.__module__.startswith(errors.__name__)
]
DRAWN_LEAF = re.compile(r"[├└]── (\w+Error) +([A-Z_]+)$")
DRAWN_BRANCH = re.compile(r"[├└]── (\w+Error) +(\d+)  ")

leaves = pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)


def test_the_tree_has_three_branches():
    assert {cls: cls.exit_code for cls in LakehouseError.__subclasses__()} == BRANCHES


def test_every_leaf_is_drawn_under_its_branch_with_its_code():
    drawn, branch, exit_code = {}, "", 0
    for line in (errors.__doc__ or "").splitlines():
        if (found := DRAWN_BRANCH.search(line)) is not None:
            branch, exit_code = found.group(1), int(found.group(2))
        elif (found := DRAWN_LEAF.search(line)) is not None:
            drawn[found.group(1)] = (branch, exit_code, found.group(2))

    assert drawn == {
        cls.__name__: (cls.__bases__[0].__name__, int(cls.exit_code), cls.code) for cls in LEAVES
    }


def test_codes_are_unique():
    codes = [cls.code for cls in LEAVES]

    assert sorted(codes) == sorted(set(codes))


@leaves
def test_the_code_is_the_name_of_the_class(cls):
    assert cls.code == re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).upper()


@leaves
def test_the_blanks_of_the_sentence_are_the_fields_of_the_class(cls):
    blanks = {name for _, name, _, _ in Formatter().parse(cls.sentence) if name is not None}

    assert blanks == {field.name for field in fields(cls)}


@leaves
def test_the_advice_is_a_whole_sentence_without_blanks(cls):
    assert cls.advice
    assert cls.advice.endswith(".")
    assert "{" not in cls.advice


@leaves
def test_every_error_can_be_said(cls):
    error = cls(**{field.name: f"<{field.name}>" for field in fields(cls)})

    assert all(f"<{field.name}>" in str(error) for field in fields(cls))


def test_an_error_becomes_what_a_result_carries():
    error = OffsetsLostError(table="orders", decision="orders=t/0:5-7")

    assert error.as_table_error() == TableError(
        code="OFFSETS_LOST",
        exit_code=ExitCode.DATA,
        sentence="Kafka no longer holds records that orders has not read; accept_gap: `orders=t/0:5-7`",
        advice=OffsetsLostError.advice,
    )
