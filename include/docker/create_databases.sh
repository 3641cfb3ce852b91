#!/usr/bin/env bash
# Runs once, when PostgreSQL makes its data folder: the roles and databases of the native stack.
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<'SQL'
\getenv shop SHOP_PASSWORD
\getenv airflow AIRFLOW_PASSWORD
\getenv debezium DEBEZIUM_PASSWORD
\getenv verify VERIFY_PASSWORD
\getenv registry REGISTRY_DATABASE_PASSWORD
CREATE ROLE shop LOGIN NOREPLICATION PASSWORD :'shop';
CREATE ROLE airflow LOGIN NOREPLICATION PASSWORD :'airflow';
CREATE ROLE debezium LOGIN REPLICATION PASSWORD :'debezium';
CREATE ROLE verify LOGIN NOREPLICATION PASSWORD :'verify';
CREATE ROLE registry LOGIN NOREPLICATION PASSWORD :'registry';
GRANT shop TO debezium;
GRANT pg_read_all_data TO verify;
CREATE DATABASE shop OWNER shop;
CREATE DATABASE airflow OWNER airflow;
CREATE DATABASE registry OWNER registry;
\connect shop
CREATE PUBLICATION shop FOR ALL TABLES;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO debezium;
SQL
