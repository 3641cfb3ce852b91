"""Look into the lake without Spark: where every table stands, and its rows."""
