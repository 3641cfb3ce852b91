"""Is silver what PostgreSQL is? Both sides as Arrow, hashed by the same function."""

from local_stack.proof.equality import compare_pipeline
from local_stack.proof.rows import Comparison

__all__ = ["Comparison", "compare_pipeline"]
