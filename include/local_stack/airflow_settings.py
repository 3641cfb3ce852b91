"""The environment of Airflow's processes: their settings, their connections, and nothing inherited."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from local_stack.component import Site, plain_environment
from local_stack.environment import connections, tool_environment

USERS = {"admin": "admin", "oncall": "op", "viewer": "viewer"}
"""User -> role; the password is the user's name: the stack listens on loopback only."""
_PARALLEL_TASKS = "4"
_NOBODY = "9"
"""Airflow's log servers listen on all interfaces, so they are off; the API server reads the files itself."""


def airflow_environment(site: Site) -> dict[str, str]:
    """Passwords are in it."""
    settings = {f"AIRFLOW__{name}": value for name, value in _settings(site).items()}
    known = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(value) for name, value in connections(site).items()}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    home = str(site.layout.data("airflow"))
    return plain_environment(**tool_environment(site), **settings, **known, PATH=path, AIRFLOW_HOME=home)


def _settings(site: Site) -> dict[str, str]:
    home = site.layout.data("airflow")
    host, _, port = site.address("airflow").partition(":")
    url = f"http://{host}:{port}"
    secrets = site.secrets
    database = f"postgresql+psycopg://airflow:{secrets.airflow}@{site.address('postgres')}/airflow"
    return {
        "CORE__DAGS_FOLDER": str(site.layout.project / "dags"),
        "CORE__PLUGINS_FOLDER": str(site.layout.project / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": _PARALLEL_TASKS,
        "CORE__FERNET_KEY": secrets.airflow_fernet_key,
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "5",
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
        "API__HOST": host,
        "API__PORT": port,
        "API__BASE_URL": url,
        "API__SECRET_KEY": secrets.airflow_api_secret,
        "API_AUTH__JWT_SECRET": secrets.airflow_jwt_secret,
        "DAG_PROCESSOR__REFRESH_INTERVAL": "15",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "15",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home / "logs" / "dag_processor"),
        "LOGGING__COLORED_CONSOLE_LOG": "False",
        "LOGGING__WORKER_LOG_SERVER_PORT": _NOBODY,
        "LOGGING__TRIGGER_LOG_SERVER_PORT": _NOBODY,
        "SCHEDULER__USE_JOB_SCHEDULE": str(site.schedules),
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    }
