"""`python -m local_stack.demo`."""

import sys

if __name__ == "__main__":
    try:
        from local_stack.demo.command import main

        main()
    except KeyboardInterrupt:  # while modules are being loaded
        sys.exit(130)
