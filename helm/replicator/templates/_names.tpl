{{/* Names and labels. StatefulSets append a set's name, and Kubernetes a hash of 11: 31 letters are left. */}}

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

{{- define "replicator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "replicator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: replicator
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of pods: nothing that changes with the chart alone, or its upgrade would roll every pod. */}}
{{- define "replicator.podLabels" -}}
{{ include "replicator.selectorLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
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

{{/* An image; give `root` and the values of the image. */}}
{{- define "replicator.image" -}}
{{- $registry := .root.Values.image.registry -}}
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
