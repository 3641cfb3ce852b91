"""The source database: how it is reached, and how far its connector has come."""
