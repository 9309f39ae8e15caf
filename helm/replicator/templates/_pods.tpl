{{/* What every pod of the chart has in common: security, placement, the topology, secrets, scratch space. */}}

{{/* Items of several `lists`, each `key` (`name`, if not given) once: the last one that is given wins. */}}
{{- define "replicator.each" -}}
{{- $key := default "name" .key -}}
{{- $names := list -}}
{{- $items := dict -}}
{{- range $list := .lists -}}
{{- range $item := $list -}}
{{- $name := get $item $key -}}
{{- if not (hasKey $items $name) -}}{{- $names = append $names $name -}}{{- end -}}
{{- $_ := set $items $name $item -}}
{{- end -}}
{{- end -}}
{{- $kept := list -}}
{{- range $names -}}{{- $kept = append $kept (get $items .) -}}{{- end -}}
{{- toYaml (dict "items" $kept) -}}
{{- end -}}

{{/* Settings of one kind of pod: its `own` values laid over `pods`, lists added up; templates are rendered. */}}
{{- define "replicator.pod" -}}
{{- $shared := .root.Values.pods -}}
{{- $own := .own -}}
{{- $pod := dict -}}
{{- range $field := list "podLabels" "podAnnotations" "nodeSelector" -}}
{{- $_ := set $pod $field (merge (dict) (default dict (get $own $field)) (default dict (get $shared $field))) -}}
{{- end -}}
{{- range $field := list "tolerations" "extraEnvFrom" -}}
{{- $_ := set $pod $field (concat (default list (get $shared $field)) (default list (get $own $field))) -}}
{{- end -}}
{{- range $field := list "extraEnv" "extraVolumes" "extraVolumeMounts" "initContainers" "sidecars" -}}
{{- $lists := list (default list (get $shared $field)) (default list (get $own $field)) -}}
{{- $key := ternary "mountPath" "name" (eq $field "extraVolumeMounts") -}}
{{- $_ := set $pod $field (include "replicator.each" (dict "lists" $lists "key" $key) | fromYaml).items -}}
{{- end -}}
{{- range $field := list "affinity" "priorityClassName" "serviceAccountName" -}}
{{- $_ := set $pod $field (default (get $shared $field) (get $own $field)) -}}
{{- end -}}
{{- tpl (toYaml $pod) .root -}}
{{- end -}}

{{/* Names of Secrets for the registry, of parent charts too, which write them as texts or as objects. */}}
{{- define "replicator.imagePullSecrets" -}}
{{- $secrets := list -}}
{{- range (default list (get (default dict .Values.global) "imagePullSecrets")) -}}
{{- $secrets = append $secrets (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- (include "replicator.each" (dict "lists" (list $secrets .Values.imagePullSecrets)) | fromYaml).items | toJson -}}
{{- end -}}

{{/* Fields of a pod's spec; give `root`, `pod` (its settings), `serviceAccount` and, for a token, `token`. */}}
{{- define "replicator.podSpec" -}}
{{- $pod := .pod -}}
{{- with .serviceAccount }}
serviceAccountName: {{ . }}
{{- end }}
automountServiceAccountToken: {{ default false .token }}
{{- with include "replicator.imagePullSecrets" .root | fromJsonArray }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- range $field := list "runAsUser" "runAsGroup" "fsGroup" }}
  {{- if get $.root.Values.podSecurity $field }}
  {{ $field }}: {{ get $.root.Values.podSecurity $field | int64 }}
  {{- end }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
enableServiceLinks: false
{{- range $field := list "priorityClassName" "nodeSelector" "tolerations" "affinity" "initContainers" }}
{{- with get $pod $field }}
{{- dict $field . | toYaml | nindent 0 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "replicator.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/*
Environment of a container of the program; give `root`, `pod` and, where it has any, `own`. Every command finds
the topology by itself, in `kubectl exec` too.
*/}}
{{- define "replicator.env" -}}
{{- $topology := dict "name" "REPLICATOR_TOPOLOGY" "value" "/etc/replicator/topology/topology.yaml" -}}
{{- $secrets := list -}}
{{- range .root.Values.secretEnv -}}
{{- $secrets = append $secrets (dict "name" .name "valueFrom" (dict "secretKeyRef" (dict "name" .existingSecret "key" .key))) -}}
{{- end -}}
{{- $lists := list (default list .own) (list $topology) $secrets .pod.extraEnv -}}
env:
  {{- (include "replicator.each" (dict "lists" $lists) | fromYaml).items | toYaml | nindent 2 }}
{{- with .pod.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Mounts of a container of the program; give `root`, `pod` and, where it has any, `own`. */}}
{{- define "replicator.mounts" -}}
{{- $mounts := list (dict "name" "topology" "mountPath" "/etc/replicator/topology" "readOnly" true) (dict "name" "tmp" "mountPath" "/tmp") -}}
{{- range $at, $mount := .root.Values.secretMounts -}}
{{- $mounts = append $mounts (dict "name" (printf "secret-%d" $at) "mountPath" $mount.mountPath "readOnly" true) -}}
{{- end -}}
volumeMounts:
  {{- (include "replicator.each" (dict "key" "mountPath" "lists" (list $mounts (default list .own) .pod.extraVolumeMounts)) | fromYaml).items | toYaml | nindent 2 }}
{{- end -}}

{{/* Volumes; give `root`, `pod`, `scratch` (size of /tmp) and, where it has any, `own`. */}}
{{- define "replicator.volumes" -}}
{{- $file := dict "key" (include "replicator.topologyKey" .root) "path" "topology.yaml" -}}
{{- $topology := dict "name" "topology" "configMap" (dict "name" (include "replicator.topologyConfigMap" .root) "items" (list $file)) -}}
{{- $volumes := list $topology (dict "name" "tmp" "emptyDir" (dict "sizeLimit" .scratch)) -}}
{{- range $at, $mount := .root.Values.secretMounts -}}
{{- $volumes = append $volumes (dict "name" (printf "secret-%d" $at) "secret" (dict "secretName" $mount.existingSecret "defaultMode" 0440)) -}}
{{- end -}}
volumes:
  {{- (include "replicator.each" (dict "lists" (list $volumes (default list .own) .pod.extraVolumes)) | fromYaml).items | toYaml | nindent 2 }}
{{- end -}}

{{/* The volume with the token of the HTTP API. */}}
{{- define "replicator.httpToken" -}}
{{- $token := .Values.http.token -}}
{{- toYaml (dict "name" "http-token" "secret" (dict "secretName" $token.existingSecret "defaultMode" 0440 "items" (list (dict "key" $token.key "path" "token")))) -}}
{{- end -}}

{{/* The Secret with the certificate of the HTTP API; empty where it is plain HTTP. */}}
{{- define "replicator.tlsSecret" -}}
{{- $tls := .Values.http.tls -}}
{{- if $tls.certManager.enabled -}}{{ include "replicator.fullname" . }}-http-tls{{- else -}}{{ $tls.existingSecret }}{{- end -}}
{{- end -}}

{{- define "replicator.scheme" -}}
{{- ternary "https" "http" (not (empty (include "replicator.tlsSecret" .))) -}}
{{- end -}}

{{/* The volume with the certificate of the HTTP API; `keys` are the files in it. */}}
{{- define "replicator.httpTls" -}}
{{- $items := list -}}
{{- range .keys -}}{{- $items = append $items (dict "key" . "path" .) -}}{{- end -}}
{{- toYaml (dict "name" "http-tls" "secret" (dict "secretName" (include "replicator.tlsSecret" .root) "defaultMode" 0440 "items" $items)) -}}
{{- end -}}

{{- define "replicator.topologyKey" -}}
{{- if .Values.existingTopology.configMap -}}{{ .Values.existingTopology.key }}{{- else -}}topology.yaml{{- end -}}
{{- end -}}
