"""`make bench`: measurements, never tests."""
