"""How many tables of an application are worked on side by side."""

from __future__ import annotations

import pytest

from cdc_lakehouse.application.per_table import tables_at_once
from cdc_lakehouse.config.models import Pipeline

DOCUMENT = {
    "version": 1,
    "name": "shop",
    "owner": "tests",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01",
    "tables": [
        {"name": "orders", "topics": ["shop.orders"]},
        {"name": "clicks", "topics": ["shop.clicks"], "group": "heavy"},
    ],
}


def pipeline(**options: object) -> Pipeline:
    return Pipeline.model_validate({**DOCUMENT, **options})


@pytest.mark.parametrize(("cores", "expected"), [(1, 2), (2, 4), (64, 16)])
def test_by_default_tables_fit_the_cores(cores, expected):
    shop = pipeline()

    assert tables_at_once(shop, shop.tables, cores=cores) == expected


def test_a_group_has_its_own_number_and_the_others_that_of_the_pipeline():
    shop = pipeline(tables_at_once=6, tables_at_once_by_group={"heavy": 1})

    assert tables_at_once(shop, shop.groups["heavy"], cores=2) == 1
    assert tables_at_once(shop, shop.groups["main"], cores=2) == 6


def test_tables_of_several_groups_in_one_application_follow_the_pipeline():
    shop = pipeline(tables_at_once=3, tables_at_once_by_group={"heavy": 1})

    assert tables_at_once(shop, shop.tables, cores=2) == 3


def test_a_number_for_a_group_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="names the group 'heavi', which no table is in"):
        pipeline(tables_at_once_by_group={"heavi": 1})
