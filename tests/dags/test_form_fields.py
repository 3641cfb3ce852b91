"""The fields of all trigger forms, as Airflow's form treats them: a field that is emptied again is null."""

from __future__ import annotations

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError
from airflow_home import PROJECT  # type: ignore[import-not-found]

from cdc_lakehouse.contract import REPAIRS


@pytest.fixture(scope="module")
def fields():
    """Every field of every form, by DAG and name."""
    dags = DagBag(dag_folder=str(PROJECT / "dags")).dags
    return {(dag_id, name): dag.params.get_param(name) for dag_id, dag in dags.items() for name in dag.params}


def can_be_empty(param) -> bool:
    try:
        param.resolve(value=None)
    except ParamValidationError:
        return False
    return True


def test_only_the_tables_of_a_repair_must_be_filled_in(fields):
    required = {field for field, param in fields.items() if not can_be_empty(param)}

    assert required == {(f"cdc_shop_{repair}", "tables") for repair in REPAIRS}


def test_no_choice_is_shown_as_null(fields):
    choices = {field: param.schema for field, param in fields.items() if "enum" in param.schema}
    labels = {field: schema.get("values_display", {}).get("null") for field, schema in choices.items()}

    assert labels == {
        ("cdc_shop", "recompute"): "all, if nothing is chosen",
        ("cdc_shop_rewind", "layer"): "silver, if nothing is chosen",
        ("cdc_shop_quarantine", "do"): "choose one",
        ("cdc_shop_retire", "what"): "choose one, or fill in undo",
    }
