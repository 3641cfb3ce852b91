"""Write what Airflow's init step needs beside the database: logins of the UI, and the pools file.

A second run replaces both with the same, or with the pools of new pipelines.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from cdc_lakehouse.config.settings import pipelines_folder
from local_stack.airflow import pools_of
from local_stack.airflow_settings import USERS
from local_stack.layout import write_private


def main() -> None:
    home = Path(os.environ["AIRFLOW_HOME"])
    write_private(home / "passwords.json", json.dumps({user: user for user in USERS}))
    (home / "pools.json").write_text(pools_of(pipelines_folder()) or "{}", encoding="utf-8")


if __name__ == "__main__":
    main()
