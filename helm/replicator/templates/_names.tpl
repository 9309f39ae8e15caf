{{/* Names and labels. StatefulSets append a set's name of 20, and Kubernetes a hash of 11: 31 letters are left. */}}

{{- define "replicator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 31 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 31 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 31 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "replicator.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/*
Labels of an object; give `root` and, where it has any, `extra`. Each name stands once: the chart's own win
over `commonLabels`, because selectors are made of them.
*/}}
{{- define "replicator.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := dict "helm.sh/chart" $chart "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/part-of" "replicator" -}}
{{- toYaml (merge (dict) (include "replicator.selectorLabels" .root | fromYaml) (default dict .extra) $own .root.Values.commonLabels) -}}
{{- end -}}

{{/*
Labels of a pod; give `root`, `extra` and `pod` (its settings). Nothing of it changes with the chart alone, or
its upgrade would roll every pod.
*/}}
{{- define "replicator.podLabels" -}}
{{- toYaml (merge (dict) (include "replicator.selectorLabels" .root | fromYaml) .extra .pod.podLabels .root.Values.commonLabels) -}}
{{- end -}}

{{/* A name of at most `most` letters: a longer one is cut and ends with a hash of the whole. */}}
{{- define "replicator.shortName" -}}
{{- if le (len .name) (int .most) -}}
{{- .name -}}
{{- else -}}
{{- printf "%s-%s" (.name | trunc (sub (int .most) 9 | int) | trimSuffix "-") (sha256sum .name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* Lays `over` into `under`, map by map; a null counts. */}}
{{- define "replicator.layInto" -}}
{{- range $key, $value := .over -}}
{{- $before := get $.under $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $before) -}}
{{- include "replicator.layInto" (dict "under" $before "over" $value) -}}
{{- else -}}
{{- $_ := set $.under $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A worker's set: the entry of `workers` over the defaults of `worker`; adds `setName`. */}}
{{- define "replicator.workerSet" -}}
{{- $set := deepCopy .root.Values.worker -}}
{{- include "replicator.layInto" (dict "under" $set "over" .entry) -}}
{{- $_ := set $set "setName" (default (default "all" .entry.cluster) .entry.name) -}}
{{- toYaml $set -}}
{{- end -}}

{{/* Workers of one set that are there at most. */}}
{{- define "replicator.mostReplicas" -}}
{{- if eq .autoscaling.kind "none" -}}{{ .replicas | int }}{{- else -}}{{ .autoscaling.maxReplicas | int }}{{- end -}}
{{- end -}}

{{/* Workers of one set that are there at least. */}}
{{- define "replicator.leastReplicas" -}}
{{- if eq .autoscaling.kind "none" -}}{{ .replicas | int }}{{- else -}}{{ .autoscaling.minReplicas | int }}{{- end -}}
{{- end -}}

{{- define "replicator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "replicator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "replicator.sparkServiceAccountName" -}}
{{- if .Values.spark.serviceAccount.create -}}
{{- default (printf "%s-spark" (include "replicator.fullname" .)) .Values.spark.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.spark.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* An image; give `root` and the values of the image. A parent chart's registry wins. */}}
{{- define "replicator.image" -}}
{{- $registry := default .root.Values.image.registry (get (default dict .root.Values.global) "imageRegistry") -}}
{{- if $registry -}}{{ $registry }}/{{- end -}}
{{- .image.repository -}}
{{- if .image.digest -}}@{{ .image.digest }}{{- else -}}:{{ default .root.Chart.AppVersion .image.tag }}{{- end -}}
{{- end -}}

{{- define "replicator.topologyConfigMap" -}}
{{- default (printf "%s-topology" (include "replicator.fullname" .)) .Values.existingTopology.configMap -}}
{{- end -}}

{{/* The topology as the user gave it, as text. */}}
{{- define "replicator.topologyText" -}}
{{- if .Values.topologyText -}}{{ .Values.topologyText }}{{- else -}}{{ toYaml .Values.topology }}{{- end -}}
{{- end -}}

{{/*
Not empty where Helm itself renders, which prints the logs of hooks. Flux has Helm as a library, without a commit and
without anything to print to: its controller panics at a hook that asks for it (seen with Flux 2.7).
*/}}
{{- define "replicator.printsHooks" -}}
{{- .Capabilities.HelmVersion.GitCommit -}}
{{- end -}}
