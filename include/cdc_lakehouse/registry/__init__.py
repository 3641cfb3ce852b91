"""Writer schemas by id."""
