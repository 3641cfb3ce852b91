"""The JSON Schema of editors and the shipped pipeline say what the models say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cdc_lakehouse.config.document import parse_document
from cdc_lakehouse.config.loader import load_pipeline, pipeline_files
from cdc_lakehouse.config.models import Pipeline, Table, TableOptions
from cdc_lakehouse.config.schema import schema_text, write_schema

PIPELINES = Path(__file__).parents[2] / "include" / "pipelines"


def test_the_committed_schema_is_what_the_models_generate():
    assert (PIPELINES / "schema.json").read_text() == schema_text(), (
        "run `python -m cdc_lakehouse.config schema`"
    )


def test_writing_the_schema_twice_changes_nothing(tmp_path):
    first = write_schema(tmp_path).read_bytes()

    assert write_schema(tmp_path).read_bytes() == first


@pytest.mark.parametrize("path", pipeline_files(PIPELINES), ids=lambda path: path.stem)
def test_every_shipped_pipeline_is_valid_for_the_loader_and_for_editors(path):
    load_pipeline(path)
    document = parse_document(path.read_text()).content

    assert list(Draft202012Validator(json.loads(schema_text())).iter_errors(document)) == []


def test_shop_has_the_five_tables_of_the_demo():
    shop = load_pipeline(PIPELINES / "shop.yaml")

    assert [(table.name, table.topics, table.group) for table in shop.tables] == [
        ("customers", ("shop.public.customers",), "main"),
        ("orders", ("shop.public.orders",), "main"),
        ("order_lines", ("shop.public.order_lines",), "main"),
        ("products", ("shop.public.products",), "main"),
        ("vouchers", ("shop.public.vouchers",), "main"),
    ]
    assert shop.schedule == "*/15 * * * *"


def test_shop_shows_every_table_option_that_has_a_choice():
    lines = parse_document((PIPELINES / "shop.yaml").read_text()).lines

    assert [key for key in TableOptions.model_fields if ("defaults", key) not in lines] == []


@pytest.mark.parametrize("model", [Pipeline, Table, TableOptions])
def test_every_key_without_a_section_of_its_own_explains_itself(model):
    schema = model.model_json_schema()
    silent = [
        key
        for key, field in schema["properties"].items()
        if "description" not in field and "$ref" not in field
    ]

    assert silent == []
