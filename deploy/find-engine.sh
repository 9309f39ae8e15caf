#!/bin/sh
# Prints the first container engine that answers, or says that there is none and ends with 2.
set -eu

for engine in ${ENGINE:-docker podman buildah}; do
  # `docker version` asks its server; the other two have none.
  if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then
    echo "$engine"
    exit 0
  fi
done
echo "No container engine answers (tried: ${ENGINE:-docker podman buildah}). Start Docker, or install Podman (Debian: apt install podman)." >&2
exit 2
