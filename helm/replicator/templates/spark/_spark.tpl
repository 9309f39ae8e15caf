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

{{- define "replicator.sparkMounts" -}}
{{ include "replicator.mounts" .root }}
{{- if hasPrefix "k8s://" .root.Values.spark.master }}
- name: executor
  mountPath: /etc/replicator/executor
  readOnly: true
{{- end }}
{{- with .root.Values.spark.extraVolumeMounts }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{- define "replicator.sparkVolumes" -}}
{{ include "replicator.volumes" (dict "root" .root "topology" (include "replicator.topologyConfigMap" .root) "key" (include "replicator.topologyKey" .root) "scratch" .root.Values.spark.scratchSize) }}
{{- with .root.Values.spark.extraVolumes }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{/* The pod of a driver; give `root` and `job`. */}}
{{- define "replicator.sparkPod" -}}
{{- $root := .root -}}
{{- $spark := $root.Values.spark -}}
{{- $remote := hasPrefix "k8s://" $spark.master -}}
metadata:
  labels:
    {{- include "replicator.podLabels" $root | nindent 4 }}
    app.kubernetes.io/component: spark
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "replicator.sparkServiceAccountName" $root }}
  {{- $security := include "replicator.podSecurity" $root }}
  {{- if $remote }}
  {{- /* The driver starts its executors through the API server. */}}
  {{- $security = replace "automountServiceAccountToken: false" "automountServiceAccountToken: true" $security }}
  {{- end }}
  {{- $security | nindent 2 }}
  enableServiceLinks: false
  containers:
    - name: spark
      image: {{ include "replicator.image" (dict "root" $root "image" $spark.image) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- include "replicator.sparkArguments" (dict "root" $root "job" .job) | nindent 8 }}
        - {{ printf "--master=%s" $spark.master | quote }}
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
      env:
        {{- include "replicator.env" $root | nindent 8 }}
        {{- if $remote }}
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
      terminationMessagePolicy: FallbackToLogsOnError
      resources:
        {{- toYaml $spark.resources | nindent 8 }}
      {{- include "replicator.containerSecurity" $root | nindent 6 }}
      volumeMounts:
        {{- include "replicator.sparkMounts" (dict "root" $root) | nindent 8 }}
  volumes:
    {{- include "replicator.sparkVolumes" (dict "root" $root) | nindent 4 }}
    {{- if $remote }}
    - name: executor
      configMap:
        name: {{ include "replicator.fullname" $root }}-executor
    {{- end }}
{{- end -}}
