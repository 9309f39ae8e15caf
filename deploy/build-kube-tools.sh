#!/usr/bin/env bash
# Builds what the slow tests of the chart run on, from Go modules: etcd, kube-apiserver, kube-controller-manager, helm,
# kube-score and Flux's helm-controller. Fetches the definitions of operators' kinds (Argo CD, Flux, cert-manager, KEDA,
# Spark, Prometheus) beside them.
#
#   deploy/build-kube-tools.sh FOLDER      then: KUBE_TOOLS=FOLDER make test-slow-chart
#
# It takes about a quarter of an hour of two processors, once. Go 1.25 or newer, and kubectl for the tests.
set -euo pipefail

KUBERNETES=1.34.4
HELM=3.19.5
ETCD=3.6.4
KUBE_SCORE=1.20.0
HELM_CONTROLLER=1.4.0
SOURCE_CONTROLLER=1.7.0
ARGO_CD=3.2.0
CERT_MANAGER=1.21.2
KEDA=2.20.2
SPARK_OPERATOR=2.4.0
PROMETHEUS_OPERATOR=0.85.0

[[ $# -eq 1 ]] || { sed -n '2,8p' "$0" >&2; exit 2; }
command -v go >/dev/null || { echo "Go is missing (Debian: apt install golang; or go.dev)." >&2; exit 2; }
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -r "$work"' EXIT
cd "$work"
go mod init kube-tools 2>/dev/null

# The folder of a module's release.
source_of() {
  go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'
}

mkdir -p "$folder/definitions"
define() {  # MODULE@VERSION FOLDER KIND…: definitions as files PLURAL.GROUP.yaml
  local place file kind
  place="$(source_of "$1")/$2"
  for kind in "${@:3}"; do
    file="$(grep -lE "^  name: $kind\$" "$place"/*.yaml)"
    install -m 644 "$file" "$folder/definitions/$kind.yaml"
  done
}
define "github.com/argoproj/argo-cd/v3@v$ARGO_CD" manifests/crds applications.argoproj.io
define "github.com/fluxcd/helm-controller@v$HELM_CONTROLLER" config/crd/bases helmreleases.helm.toolkit.fluxcd.io
define "github.com/fluxcd/source-controller@v$SOURCE_CONTROLLER" config/crd/bases \
  {helmcharts,helmrepositories,ocirepositories}.source.toolkit.fluxcd.io
define "github.com/cert-manager/cert-manager@v$CERT_MANAGER" deploy/crds certificates.cert-manager.io
define "github.com/kedacore/keda/v2@v$KEDA" config/crd/bases scaledobjects.keda.sh
define "github.com/kubeflow/spark-operator/v2@v$SPARK_OPERATOR" config/crd/bases \
  sparkapplications.sparkoperator.k8s.io scheduledsparkapplications.sparkoperator.k8s.io
define "github.com/prometheus-operator/prometheus-operator@v$PROMETHEUS_OPERATOR" example/prometheus-operator-crd \
  podmonitors.monitoring.coreos.com servicemonitors.monitoring.coreos.com prometheusrules.monitoring.coreos.com

# Kubernetes' own module takes its libraries from a folder that no module has: their releases are the same.
while read -r module _; do
  go mod edit "-replace=$module=$module@v0.${KUBERNETES#*.}"
done < <(grep '=> ./staging' "$(source_of "k8s.io/kubernetes@v$KUBERNETES")/go.mod")
cat > tools.go <<'GO'
//go:build tools

package tools

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
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
# As Helm's own Makefile does: a Helm that does not know them takes clusters for Kubernetes 1.20, and one without a
# commit is a library to the chart.
minor="$(cut -d. -f2 <<<"$KUBERNETES")"
build helm helm.sh/helm/v3/cmd/helm "-X helm.sh/helm/v3/internal/version.version=v$HELM -X helm.sh/helm/v3/internal/version.gitCommit=v$HELM \
  -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor \
  -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=$minor"
for program in kube-apiserver kube-controller-manager; do
  build "$program" "k8s.io/kubernetes/cmd/$program" \
    "-X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=${KUBERNETES%%.*} -X $version.gitMinor=$minor"
done
GOBIN="$folder" go install "github.com/zegl/kube-score/cmd/kube-score@v$KUBE_SCORE"

# Its own types are named by a folder beside it, which is a module of the same release.
cp -r "$(source_of "github.com/fluxcd/helm-controller@v$HELM_CONTROLLER")" "$work/helm-controller"
chmod -R u+w "$work/helm-controller"
cd "$work/helm-controller"
go mod edit -dropreplace=github.com/fluxcd/helm-controller/api
echo "Building helm-controller ..."
go build -mod=mod -trimpath -ldflags "-s -w" -o "$folder/helm-controller" .
echo "Done: KUBE_TOOLS=$folder"
