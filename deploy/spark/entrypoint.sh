#!/bin/sh
# The spark image is three things. As a Job it is the `replicator` command. Started by Spark on
# Kubernetes it is told which by its first argument: `driver` runs spark-submit in client mode, `executor`
# joins the driver named in its environment. This is what Spark's own image does, for our environment.
set -eu

SPARK_HOME="$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')"
export SPARK_HOME PYSPARK_PYTHON=/opt/replicator/bin/python

case "${1:-}" in
  driver)
    shift
    exec tini -s -- "$SPARK_HOME/bin/spark-submit" \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
      --deploy-mode client "$@"
    ;;
  executor)
    shift
    options="$(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p' | tr '\n' ' ')"
    # shellcheck disable=SC2086 # options are words
    exec tini -s -- "$JAVA_HOME/bin/java" $options \
      "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" \
      --executor-id "$SPARK_EXECUTOR_ID" \
      --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" \
      --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
      --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  *)
    exec replicator "$@"
    ;;
esac
