"""Becomes the given program, which dies with its owner: `launch.py SIGNAL OWNER_PID PROGRAM ARGUMENT…`.

Runs as a script of its own and imports the standard library only: it must be quick.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    signal_number, owner, *command = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != int(owner):  # it died before we could ask to be told
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
