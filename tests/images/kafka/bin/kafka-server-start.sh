#!/bin/sh
exec /opt/kafka/bin/java-class kafka.Kafka "$@"
