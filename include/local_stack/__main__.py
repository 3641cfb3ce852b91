"""`python -m local_stack`."""

from local_stack.cli import run

if __name__ == "__main__":
    run()
