"""`python -m local_stack`."""

import sys

if __name__ == "__main__":
    try:
        from local_stack.cli import run

        run()
    except KeyboardInterrupt:  # while modules are being loaded
        sys.exit(130)
