"""The JSON Schema of pipeline files, generated from the models for editors."""

from __future__ import annotations

import json
from pathlib import Path

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.settings import pipelines_folder

FILE_NAME = "schema.json"


def schema_text() -> str:
    """What `schema.json` must hold; a test compares it with the committed file."""
    schema = Pipeline.model_json_schema(mode="validation")
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_schema(folder: Path | None = None) -> Path:
    """Write `schema.json` beside the pipelines; a second call writes the same bytes."""
    path = (folder if folder is not None else pipelines_folder()) / FILE_NAME
    path.write_text(schema_text(), encoding="utf-8")
    return path


if __name__ == "__main__":
    write_schema()
