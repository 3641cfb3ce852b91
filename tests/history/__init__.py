"""Random histories of a real PostgreSQL through the real chain, compared with silver at quiet points."""
