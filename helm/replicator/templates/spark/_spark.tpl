{{/* What the two ways of running a job on history share. */}}

{{- define "replicator.sparkArguments" -}}
- {{ .job.command }}
{{- if eq .job.command "archive" }}
- {{ printf "--cluster=%s" .job.cluster | quote }}
- {{ printf "--archive=%s" .job.archive | quote }}
{{- else }}
- {{ printf "--flow=%s" .job.flow | quote }}
{{- end }}
{{- if eq .job.command "bulk-sync" }}
- --yes
{{- end }}
{{- range .job.topics }}
- {{ printf "--topic=%s" . | quote }}
{{- end }}
{{- range .job.args }}
- {{ tpl . $.root | quote }}
{{- end }}
{{- end -}}

{{/* Whole cores that a driver may use: its CPU limit, or what it asks for. */}}
{{- define "replicator.sparkCores" -}}
{{- $cpu := default .requests.cpu .limits.cpu | toString -}}
{{- if hasSuffix "m" $cpu -}}
{{- divf (trimSuffix "m" $cpu | float64) 1000.0 | ceil | int -}}
{{- else -}}
{{- float64 $cpu | ceil | int -}}
{{- end -}}
{{- end -}}

{{/* `local[*]` would be every core of the node, however few the pod has. */}}
{{- define "replicator.sparkMaster" -}}
{{- if has .Values.spark.master (list "local" "local[*]") -}}
local[{{ ternary "1" (include "replicator.sparkCores" .Values.spark.resources) (eq .Values.spark.master "local") }}]
{{- else -}}
{{- .Values.spark.master -}}
{{- end -}}
{{- end -}}

{{- define "replicator.sparkPodSettings" -}}
{{- include "replicator.pod" (dict "root" . "own" .Values.spark) -}}
{{- end -}}

{{- define "replicator.sparkMetadata" -}}
{{- $pod := include "replicator.sparkPodSettings" . | fromYaml -}}
metadata:
  labels:
    {{- include "replicator.podLabels" (dict "root" . "pod" $pod "extra" (dict "app.kubernetes.io/component" "spark")) | nindent 4 }}
  {{- with $pod.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The pod of a driver; give `root` and `job`. */}}
{{- define "replicator.sparkPod" -}}
{{- $root := .root -}}
{{- $spark := $root.Values.spark -}}
{{- $remote := hasPrefix "k8s://" $spark.master -}}
{{- $pod := include "replicator.sparkPodSettings" $root | fromYaml -}}
{{- $env := list -}}
{{- $mounts := list -}}
{{- $volumes := list -}}
{{- if $remote -}}
{{- range $name, $field := dict "POD_IP" "status.podIP" "POD_NAME" "metadata.name" -}}
{{- $env = append $env (dict "name" $name "valueFrom" (dict "fieldRef" (dict "fieldPath" $field))) -}}
{{- end -}}
{{- $mounts = append $mounts (dict "name" "executor" "mountPath" "/etc/replicator/executor" "readOnly" true) -}}
{{- $volumes = append $volumes (dict "name" "executor" "configMap" (dict "name" (printf "%s-executor" (include "replicator.fullname" $root)))) -}}
{{- end -}}
{{- include "replicator.sparkMetadata" $root }}
spec:
  restartPolicy: Never
  {{- /* With executors, the driver starts them through the API server. */}}
  {{- include "replicator.podSpec" (dict "root" $root "pod" $pod "serviceAccount" (include "replicator.sparkServiceAccountName" $root) "token" $remote) | nindent 2 }}
  containers:
    - name: spark
      image: {{ include "replicator.image" (dict "root" $root "image" $spark.image) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- include "replicator.sparkArguments" (dict "root" $root "job" .job) | nindent 8 }}
        - {{ printf "--master=%s" (include "replicator.sparkMaster" $root) | quote }}
        {{- range $name, $value := $spark.conf }}
        - {{ printf "--conf=%s=%v" $name $value | quote }}
        {{- end }}
        {{- if $remote }}
        - --conf=spark.driver.host=$(POD_IP)
        - --conf=spark.driver.bindAddress=0.0.0.0
        - --conf=spark.executor.instances={{ $spark.executors | int }}
        - --conf=spark.kubernetes.namespace={{ $root.Release.Namespace }}
        - --conf=spark.kubernetes.container.image={{ include "replicator.image" (dict "root" $root "image" $spark.image) }}
        - --conf=spark.kubernetes.driver.pod.name=$(POD_NAME)
        - --conf=spark.kubernetes.executor.podTemplateFile=/etc/replicator/executor/pod.yaml
        {{- end }}
      {{- include "replicator.env" (dict "root" $root "pod" $pod "own" $env) | nindent 6 }}
      terminationMessagePolicy: FallbackToLogsOnError
      resources:
        {{- toYaml $spark.resources | nindent 8 }}
      {{- include "replicator.containerSecurity" $root | nindent 6 }}
      {{- include "replicator.mounts" (dict "root" $root "pod" $pod "own" $mounts) | nindent 6 }}
    {{- with $pod.sidecars }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- include "replicator.volumes" (dict "root" $root "pod" $pod "scratch" $spark.scratchSize "own" $volumes) | nindent 2 }}
{{- end -}}
