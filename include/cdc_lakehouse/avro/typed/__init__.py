"""Raw Avro values into final ones, singly and as columns: logical types, nesting, several writers."""
