#!/bin/sh
# The spark image is three things. As a Job it is the `replicator` command. Started by Spark on
# Kubernetes it is told which by its first argument: `driver` runs spark-submit in client mode, `executor`
# joins the driver named in its environment. This is what Spark's own image does, for our environment.
set -eu

SPARK_HOME="$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')"
export SPARK_HOME PYSPARK_PYTHON=/opt/replicator/bin/python

# Java and Hadoop want a name and a home of their user, and the platform may have made up its id.
if ! getent passwd "$(id -u)" >/dev/null; then
  NSS_WRAPPER_PASSWD="$(mktemp)"
  NSS_WRAPPER_GROUP="$(mktemp)"
  LD_PRELOAD="$(find /usr/lib -name libnss_wrapper.so)"
  { cat /etc/passwd; echo "replicator:x:$(id -u):$(id -g):replicator:$HOME:/usr/sbin/nologin"; } \
    | sed '/:10001:10001:/d' >"$NSS_WRAPPER_PASSWD"
  cp /etc/group "$NSS_WRAPPER_GROUP"
  export NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP LD_PRELOAD
fi

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
    exec tini -s -- replicator "$@"
    ;;
esac
