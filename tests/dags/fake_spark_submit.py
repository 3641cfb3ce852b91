"""Stands in for spark-submit: a real child process that plays the script named by `FAKE_SPARK`.

The script is JSON: `lines` to print, `result` to write, `exit` to end with, `sleep` seconds before,
`by_job` with the same keys for one application, and `by_task` with those of one task. Every call is
recorded beside the script.
"""

import json
import os
import sys
import time
from pathlib import Path

script_file = Path(os.environ["FAKE_SPARK"])
script = json.loads(script_file.read_text())
application = next(Path(word).stem for word in sys.argv if word.endswith(".py") and "spark_jobs" in word)
script.update(script.get("by_job", {}).get(application, {}))
if "--task-id" in sys.argv:
    script.update(
        script.get("by_task", {}).get(sys.argv[sys.argv.index("--task-id") + 1], {}).get(application, {})
    )

call = {"argv": sys.argv, "environ": dict(os.environ), "pid": os.getpid(), "group": os.getpgid(0)}
call["cmdline"] = Path(f"/proc/{os.getpid()}/cmdline").read_text()
call_file = script_file.with_name(f"{application}.call.json")
call_file.with_suffix(".new").write_text(json.dumps(call))
call_file.with_suffix(".new").replace(call_file)

for line in script.get("lines", []):
    print(line, flush=True)
time.sleep(script.get("sleep", 0))
if script.get("result") is not None:
    Path(os.environ["CDC_LAKEHOUSE_RESULT"]).write_text(json.dumps(script["result"]))
sys.exit(script.get("exit", 0))
