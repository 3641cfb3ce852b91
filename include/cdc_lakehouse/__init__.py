"""The change-data lakehouse: from Kafka change topics to Delta tables that equal their source."""
