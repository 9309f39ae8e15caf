#!/usr/bin/env bash
# Builds what tests/chart/test_releases.py runs on: etcd, kube-apiserver and helm, from their Go modules.
#
#   deploy/build-kube-tools.sh FOLDER      then: KUBE_TOOLS=FOLDER pytest tests/chart/test_releases.py
#
# It takes about ten minutes of two processors, once. Go 1.25 or newer, and kubectl for the tests.
set -euo pipefail

KUBERNETES=1.34.4
HELM=3.19.5
ETCD=3.6.4

[[ $# -eq 1 ]] || { sed -n '2,6p' "$0" >&2; exit 2; }
command -v go >/dev/null || { echo "Go is missing (Debian: apt install golang; or go.dev)." >&2; exit 2; }
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -r "$work"' EXIT
cd "$work"

go mod init kube-tools 2>/dev/null
# Kubernetes' own module takes its libraries from a folder that no module has: their releases are the same.
source="$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')"
while read -r module _; do
  go mod edit "-replace=$module=$module@v0.${KUBERNETES#*.}"
done < <(grep '=> ./staging' "$source/go.mod")
cat > tools.go <<'GO'
//go:build tools

package tools

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
GO
go mod edit "-require=k8s.io/kubernetes@v$KUBERNETES" "-require=helm.sh/helm/v3@v$HELM" "-require=go.etcd.io/etcd/server/v3@v$ETCD"
go mod tidy

export CGO_ENABLED=0
version=k8s.io/component-base/version
build() {
  echo "Building $1 ..."
  go build -trimpath -ldflags "-s -w $3" -o "$folder/$1" "$2"
}
build etcd go.etcd.io/etcd/server/v3 ""
# As Helm's own Makefile does: a Helm that does not know them takes clusters for Kubernetes 1.20.
minor="$(cut -d. -f2 <<<"$KUBERNETES")"
build helm helm.sh/helm/v3/cmd/helm "-X helm.sh/helm/v3/internal/version.version=v$HELM \
  -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor \
  -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=$minor"
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver \
  "-X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=${KUBERNETES%%.*} -X $version.gitMinor=$minor"
echo "Done: KUBE_TOOLS=$folder"
