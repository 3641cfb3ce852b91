"""An Airflow of its own for this tier: a throw-away home on SQLite, and a stand-in for spark-submit.

Imported before anything of Airflow, which reads the environment once.
"""

import json
import os
import stat
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
HOME = Path(tempfile.mkdtemp(prefix="cdc_lakehouse_dags_"))
CANARY = "canary-5e1f0c7a"
"""Part of every password here; it may show up in no rendered field, log, argument or XCom."""

for _name in [name for name in os.environ if name.startswith(("AIRFLOW_", "_AIRFLOW_", "CDC_LAKEHOUSE_"))]:
    del os.environ[_name]


def _connection(**fields: object) -> str:
    return json.dumps(fields)


os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(PROJECT / "dags"),
    AIRFLOW__CORE__PLUGINS_FOLDER=str(PROJECT / "plugins"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__CORE__FERNET_KEY="",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
    AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(HOME / "logs"),
    AIRFLOW_CONN_LAKEHOUSE_KAFKA=_connection(
        conn_type="generic", host="broker:9092", login="reader", password=f"kafka-{CANARY}"
    ),
    AIRFLOW_CONN_LAKEHOUSE_REGISTRY=_connection(
        conn_type="generic", host="http://registry:8080", login="reader", password=f"registry-{CANARY}"
    ),
    AIRFLOW_CONN_LAKEHOUSE_STORAGE=_connection(
        conn_type="generic", login="key", password=f"storage-{CANARY}", extra={"root": "file:///lake"}
    ),
    AIRFLOW_CONN_LAKEHOUSE_SOURCE=_connection(
        conn_type="generic", host="database", login="reader", password=f"source-{CANARY}"
    ),
    AIRFLOW_CONN_SPARK_DEFAULT=_connection(conn_type="spark", host="local[2]", password=f"spark-{CANARY}"),
    CDC_LAKEHOUSE_PIPELINES=str(HERE / "pipelines"),
    FAKE_SPARK=str(HOME / "script.json"),
    PATH=f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}",
)


def _install_fake_spark_submit() -> None:
    target = HOME / "bin" / "spark-submit"
    target.parent.mkdir()
    target.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "fake_spark_submit.py"}" "$@"\n')
    target.chmod(target.stat().st_mode | stat.S_IXUSR)


_install_fake_spark_submit()
