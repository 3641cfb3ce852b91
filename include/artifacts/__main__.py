"""`python -m artifacts`."""

from artifacts.cli import run

if __name__ == "__main__":
    run()
