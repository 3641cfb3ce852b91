"""The change-data lakehouse: from Kafka change topics to Delta tables that equal their source."""

__version__ = "0.1.0"
