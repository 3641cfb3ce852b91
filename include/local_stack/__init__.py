"""The whole chain from PostgreSQL to Airflow as plain child processes, for demo and tests."""

from local_stack.stack import LocalStack, RunningStack

__all__ = ["LocalStack", "RunningStack"]
