#!/usr/bin/env bash
# Builds the images with the container engine that answers: docker, podman or buildah.
#
#   deploy/build-images.sh [worker] [spark]
#
# ENGINE         which one; empty is the first that answers
# IMAGE_PREFIX   registry and path before /worker and /spark; `replicator` as in the chart
# PYTHON_IMAGE   base image instead of the one pinned in the Dockerfile
# PIP_CONF       pip's settings, where packages come from an index of your own
# CA_FILE        certificates to trust while building
# REVISION       commit that the labels name, and SOURCE_DATE_EPOCH its time; the newest one
# BUILD_FLAGS    further flags of the engine's `build`
set -euo pipefail
cd "$(dirname "$0")/.."

engine="$(deploy/find-engine.sh)"
prefix="${IMAGE_PREFIX:-replicator}"
version="$(make --silent --no-print-directory version)"
revision="${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}"
# The time of the last commit: the same source gives the same image.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
export SOURCE_DATE_EPOCH

flags=(
  --build-arg "VERSION=$version"
  --build-arg "REVISION=$revision"
  --build-arg "CREATED=$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
)
[[ -z "${PYTHON_IMAGE:-}" ]] || flags+=(--build-arg "PYTHON_IMAGE=$PYTHON_IMAGE")
[[ -z "${PIP_CONF:-}" ]] || flags+=(--secret "id=pip.conf,src=$PIP_CONF")
[[ -z "${CA_FILE:-}" ]] || flags+=(--secret "id=ca.crt,src=$CA_FILE")
# Podman and Buildah give every file and the image this time, which must not change with the commit, or every
# layer would; and they keep health checks only in Docker's format.
[[ "$engine" == docker ]] || flags+=(--format docker --timestamp 0 --layers)
# shellcheck disable=SC2206 # flags are words
flags+=(${BUILD_FLAGS:-})

[[ $# -gt 0 ]] || set -- worker spark
for image; do
  echo "Building $prefix/$image:$version with $engine ..."
  "$engine" build "${flags[@]}" -f deploy/Dockerfile --target "$image" -t "$prefix/$image:$version" .
done
