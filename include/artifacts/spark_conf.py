"""The folder for SPARK_CONF_DIR: the same Spark for Airflow's tasks, for tests and for the shell."""

from __future__ import annotations

import os
from pathlib import Path

from artifacts.appcds import archived_class_path, existing_archive
from artifacts.spark_files import (
    DEFAULTS_FILE,
    LOGGING_FILE,
    driver_flags,
    object_store_class_path,
    render_defaults,
    render_logging,
    spark_class_path,
    spark_settings,
)


def write_spark_conf(folder: Path, *, quick_start: bool = True, object_store: bool = False) -> Path:
    """Write both files and return the folder; a second call writes the same again."""
    target = folder.absolute()
    target.mkdir(parents=True, exist_ok=True)
    logging_file = target / LOGGING_FILE
    archive = existing_archive()
    more = object_store_class_path() if object_store else ()
    settings = spark_settings(
        driver_class_path=(*(archived_class_path() if archive else spark_class_path()), *more),
        executor_class_path=(*spark_class_path(), *more),
        flags=driver_flags(logging_file=logging_file, archive=archive),
        warehouse=target.parent / "spark-warehouse",
        quick_start=quick_start,
    )
    _replace(logging_file, render_logging())
    _replace(target / DEFAULTS_FILE, render_defaults(settings))
    return target


def _replace(path: Path, text: str) -> None:
    """As a whole: a job may be starting at this moment."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
