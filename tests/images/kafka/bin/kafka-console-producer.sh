#!/bin/sh
exec /opt/kafka/bin/java-class org.apache.kafka.tools.ConsoleProducer "$@"
