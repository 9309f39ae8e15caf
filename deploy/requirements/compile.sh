#!/bin/sh
# Writes what images are built from: every package in one version, known by its hashes, for all platforms.
# Versions that stand in the files stay; `--upgrade` takes newer ones.
set -eu
cd "$(dirname "$0")/../.."

compile() {
  target="deploy/requirements/$1.txt"
  shift
  uv pip compile "$@" --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet \
    --output-file "$target"
  sed -i "1i # Written by 'make requirements'; every package is known by its hashes." "$target"
}
compile worker pyproject.toml --extra aws "$@"
compile spark pyproject.toml --extra aws --extra spark --extra delta --constraint deploy/requirements/worker.txt "$@"
compile build deploy/requirements/build.in "$@"
