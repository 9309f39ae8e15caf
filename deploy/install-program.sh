#!/bin/sh
# A step of the Dockerfile: installs the program's wheel into the environment, writes the list of what is
# installed, and puts what this added into /program, so that it is a layer of its own: an upgrade of the
# program pulls a few megabytes.
set -eu

environment=/opt/replicator
marker="$(mktemp)"
/tools/bin/python -m pip --python "$environment/bin/python" install --quiet --no-compile --no-deps --no-index /wheels/replicator-*.whl
"$environment/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$environment"/lib/python*/site-packages/replicator
mkdir -p "$environment/share" /program
/tools/bin/python -m cyclonedx_py environment --output-reproducible --output-format JSON \
  --output-file "$environment/share/sbom.cdx.json" "$environment/bin/python"
find "$environment" -type f -newer "$marker" -exec cp --parents {} /program \;
find /program -exec touch --no-dereference --date=@0 {} +
rm "$marker"
