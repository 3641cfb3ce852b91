# The images of docker-compose.yml: `lakehouse` for Airflow and Spark, `connect` for Kafka Connect.
# Base images are pinned here, everything else by requirements.lock and include/artifacts/artifacts.lock.

FROM eclipse-temurin:17.0.14_7-jre-jammy AS java

FROM python:3.11.14-slim-bookworm AS python
ENV JAVA_HOME=/opt/java/openjdk \
    CDC_LAKEHOUSE_CACHE=/opt/cache \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/venv/bin:/opt/java/openjdk/bin:/usr/local/bin:/usr/bin:/bin
COPY --from=java /opt/java/openjdk /opt/java/openjdk
WORKDIR /opt/cdc_lakehouse
COPY requirements.lock ./
COPY include/artifacts/installer.lock include/artifacts/installer.lock
RUN python -m venv /opt/venv \
 && pip install --no-cache-dir --require-hashes -r include/artifacts/installer.lock \
 && VIRTUAL_ENV=/opt/venv uv pip install --no-cache --require-hashes --compile-bytecode -r requirements.lock
COPY include/artifacts include/artifacts
COPY include/log_store include/log_store
# A company's mirror of Maven Central; empty means Maven Central itself.
ARG CDC_LAKEHOUSE_MAVEN_ROOT=""
RUN PYTHONPATH=include python -m artifacts fetch --group spark --group spark-s3

FROM python AS plugins
RUN PYTHONPATH=include python -m artifacts fetch --group debezium --group converter \
 && mkdir -p /opt/connect-plugins/converter \
 && tar -xzf /opt/cache/artifacts/debezium-*/debezium-connector-postgres-*-plugin.tar.gz -C /opt/connect-plugins \
 && cp /opt/cache/artifacts/converter-*/*.jar /opt/connect-plugins/converter/

FROM apache/kafka:4.3.1 AS connect
COPY --from=plugins /opt/connect-plugins /opt/connect-plugins
COPY include/docker/connect.properties include/docker/connect.sh /opt/connect/
CMD ["bash", "/opt/connect/connect.sh"]

FROM python AS lakehouse
ENV PYTHONPATH=/opt/cdc_lakehouse/include \
    PYSPARK_PYTHON=/opt/venv/bin/python \
    SPARK_CONF_DIR=/opt/cdc_lakehouse/spark-conf \
    AIRFLOW_HOME=/opt/airflow \
    CDC_LAKEHOUSE_PIPELINES=/opt/cdc_lakehouse/include/pipelines
COPY include include
COPY dags dags
COPY plugins plugins
COPY spark_jobs spark_jobs
# Of two settings with one name Spark takes the later: those for a cluster stand behind the common ones.
RUN python -m artifacts spark-conf --to spark-conf --s3 \
 && cat include/docker/spark-cluster.conf >> spark-conf/spark-defaults.conf \
 && useradd --uid 10001 --create-home lakehouse \
 && mkdir -p /opt/airflow /lake \
 && chown lakehouse:lakehouse /opt/airflow /lake
USER lakehouse
