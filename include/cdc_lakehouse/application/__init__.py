"""One Spark application: its command line, its session, its run over a group of tables."""
