"""`make check`: try a pipeline file and every connection, and write nothing."""
