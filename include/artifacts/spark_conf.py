"""The folder for SPARK_CONF_DIR: the same Spark for Airflow's tasks, for tests and for the shell."""

from __future__ import annotations

from pathlib import Path

from artifacts.appcds import archived_class_path, existing_archive
from artifacts.spark_files import (
    DEFAULTS_FILE,
    LOGGING_FILE,
    driver_flags,
    render_defaults,
    render_logging,
    spark_class_path,
    spark_settings,
)


def write_spark_conf(folder: Path, *, quick_start: bool = True) -> Path:
    """Write both files and return the folder; a second call writes the same again."""
    target = folder.absolute()
    target.mkdir(parents=True, exist_ok=True)
    logging_file = target / LOGGING_FILE
    archive = existing_archive()
    settings = spark_settings(
        driver_class_path=archived_class_path() if archive else spark_class_path(),
        executor_class_path=spark_class_path(),
        flags=driver_flags(logging_file=logging_file, quick_start=quick_start, archive=archive),
        warehouse=target.parent / "spark-warehouse",
    )
    logging_file.write_text(render_logging(), encoding="utf-8")
    (target / DEFAULTS_FILE).write_text(render_defaults(settings), encoding="utf-8")
    return target
