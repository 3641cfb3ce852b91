"""A merge of few rows without a Spark job: Arrow columns in, data files and deletion vectors out."""
