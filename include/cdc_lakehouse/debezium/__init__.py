"""What a change event means: envelope, operation, position, semantic types. Pure."""
