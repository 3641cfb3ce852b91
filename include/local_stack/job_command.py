"""Run a command with the environment that jobs get from the stack."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE
from local_stack.errors import StackError
from local_stack.stack import LocalStack


class NoConnectionsError(StackError):
    def __init__(self) -> None:
        super().__init__(
            "no stack runs here and the environment names no lake; start the stack with "
            f"`python -m local_stack up`, or set {ENV_CONNECTION_STORAGE} and its siblings"
        )


class NoSuchCommandError(StackError):
    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"{command} cannot be run: {reason}")


def become(command: Sequence[str], stack: LocalStack) -> None:
    """Never returns: this process becomes the command, so its exit code is the command's."""
    environment = command_environment(os.environ, stack)
    try:
        os.execvpe(command[0], list(command), environment)  # noqa: S606
    except OSError as problem:
        raise NoSuchCommandError(command[0], problem.strerror or str(problem)) from problem


def command_environment(inherited: Mapping[str, str], stack: LocalStack) -> dict[str, str]:
    """The caller's own connections win; else those of the stack, running or stopped a moment ago."""
    if inherited.get(ENV_CONNECTION_STORAGE):
        return dict(inherited)
    if not stack.state.ports or not stack.layout.secrets_file.exists():
        raise NoConnectionsError
    path = os.pathsep.join([os.path.dirname(sys.executable), inherited.get("PATH", os.defpath)])  # noqa: PTH120
    return {**inherited, **stack.attach().job_environment(), "PATH": path}
