"""Airflow DAGs of the pipeline `shop` (include/pipelines/shop.yaml): micro-batches and maintenance."""

from cdc_lakehouse.orchestration.pipeline_dag import build_pipeline_dags

cdc_shop, cdc_shop_maintenance = build_pipeline_dags("shop")
