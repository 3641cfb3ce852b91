"""The whole chain at work: rows change, DAG runs carry them on, silver is compared with its source."""
