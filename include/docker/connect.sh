#!/usr/bin/env bash
# Starts Kafka Connect; the password goes from the environment into a file that only this user reads.
set -euo pipefail
umask 077
sed "s|@KAFKA_PASSWORD@|${KAFKA_CLIENT_PASSWORD:?}|" /opt/connect/connect.properties > /tmp/connect.properties
unset KAFKA_CLIENT_PASSWORD
exec /opt/kafka/bin/connect-distributed.sh /tmp/connect.properties
