{{/* What every pod of the chart has in common: security, the topology, secrets, scratch space. */}}

{{- define "replicator.podSecurity" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- range $field := list "runAsUser" "runAsGroup" "fsGroup" }}
  {{- if get $.Values.podSecurity $field }}
  {{ $field }}: {{ get $.Values.podSecurity $field | int64 }}
  {{- end }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "replicator.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Every command of the program finds the topology by itself, in `kubectl exec` too. */}}
{{- define "replicator.env" -}}
- name: REPLICATOR_TOPOLOGY
  value: /etc/replicator/topology/topology.yaml
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .key }}
{{- end }}
{{- end -}}

{{- define "replicator.mounts" -}}
- name: topology
  mountPath: /etc/replicator/topology
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- range $at, $mount := .Values.secretMounts }}
- name: secret-{{ $at }}
  mountPath: {{ $mount.mountPath }}
  readOnly: true
{{- end }}
{{- end -}}

{{/* Volumes; give `root`, `topology` (name of the ConfigMap), `key` and `scratch` (size of /tmp). */}}
{{- define "replicator.volumes" -}}
- name: topology
  configMap:
    name: {{ .topology }}
    items:
      - key: {{ .key }}
        path: topology.yaml
- name: tmp
  emptyDir:
    sizeLimit: {{ .scratch }}
{{- range $at, $mount := .root.Values.secretMounts }}
- name: secret-{{ $at }}
  secret:
    secretName: {{ $mount.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "replicator.topologyKey" -}}
{{- if .Values.existingTopology.configMap -}}{{ .Values.existingTopology.key }}{{- else -}}topology.yaml{{- end -}}
{{- end -}}
