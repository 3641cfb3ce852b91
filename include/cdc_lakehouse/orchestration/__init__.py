"""Airflow: DAG builders, the operator, the reading of results."""
