{{/*
What the schema cannot see. All problems are told at once, each with the value that is wrong.
*/}}
{{- define "replicator.checks" -}}
{{- $problems := list -}}
{{- $v := .Values -}}

{{- $given := list -}}
{{- if $v.topology -}}{{- $given = append $given "topology" -}}{{- end -}}
{{- if $v.topologyText -}}{{- $given = append $given "topologyText" -}}{{- end -}}
{{- if $v.existingTopology.configMap -}}{{- $given = append $given "existingTopology.configMap" -}}{{- end -}}
{{- if not $given -}}
{{- $problems = append $problems "no topology: give 'topology' in your values, or '--set-file topologyText=topology.yaml', or 'existingTopology.configMap'" -}}
{{- else if gt (len $given) 1 -}}
{{- $problems = append $problems (printf "%s are given: give one of them" (join " and " $given)) -}}
{{- end -}}
{{- if and (eq $v.reload "restart") $v.existingTopology.configMap -}}
{{- $problems = append $problems (printf "reload: restart cannot see edits of the ConfigMap '%s': use reload: watch" $v.existingTopology.configMap) -}}
{{- end -}}

{{- $document := default dict $v.topology -}}
{{- if $v.topologyText -}}{{- $document = fromYaml $v.topologyText -}}{{- end -}}
{{- if hasKey $document "Error" -}}
{{- $problems = append $problems (printf "topologyText is no YAML: %s" $document.Error) -}}
{{- end -}}
{{- $spec := default dict (get $document "spec") -}}
{{- $aliases := keys (default dict (get $spec "clusters")) | sortAlpha -}}
{{- $links := list -}}
{{- range (default list (get $spec "links")) -}}{{- $links = append $links .name -}}{{- end -}}

{{- $names := list -}}
{{- range $entry := $v.workers -}}
{{- $set := include "replicator.workerSet" (dict "root" $ "entry" $entry) | fromYaml -}}
{{- $name := $set.setName -}}
{{- $where := printf "workers '%s'" $name -}}
{{- if has $name $names -}}{{- $problems = append $problems (printf "%s: two sets of workers have this name" $where) -}}{{- end -}}
{{- $names = append $names $name -}}
{{- if gt (len $name) 20 -}}{{- $problems = append $problems (printf "%s: the name is longer than 20 letters: give the set a shorter 'name'" $where) -}}{{- end -}}
{{- if and $aliases $entry.cluster (not (has $entry.cluster $aliases)) -}}
{{- $problems = append $problems (printf "%s: cluster '%s' is not in the topology (there are: %s)" $where $entry.cluster (join ", " $aliases)) -}}
{{- end -}}
{{- range $flow := $entry.flows -}}
{{- range $alias := splitList "->" $flow -}}
{{- if and $aliases (not (has $alias $aliases)) -}}
{{- $problems = append $problems (printf "%s: flow '%s' names '%s', which is not in the topology (there are: %s)" $where $flow $alias (join ", " $aliases)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $needed := add (int $set.gracePeriodSeconds) 10 -}}
{{- if lt (int $set.terminationGracePeriodSeconds) (int $needed) -}}
{{- $problems = append $problems (printf "%s: terminationGracePeriodSeconds %d kills workers before they have drained: gracePeriodSeconds %d needs %d" $where (int $set.terminationGracePeriodSeconds) (int $set.gracePeriodSeconds) $needed) -}}
{{- end -}}
{{- $least := include "replicator.leastReplicas" $set | int -}}
{{- $most := include "replicator.mostReplicas" $set | int -}}
{{- $pdb := $set.podDisruptionBudget -}}
{{- $stay := not (kindIs "invalid" $pdb.minAvailable) -}}
{{- $go := not (kindIs "invalid" $pdb.maxUnavailable) -}}
{{- if and $stay $go -}}
{{- $problems = append $problems (printf "%s: podDisruptionBudget has both minAvailable %v and maxUnavailable %v: set one of them to null" $where $pdb.minAvailable $pdb.maxUnavailable) -}}
{{- else if and (gt $most 1) $stay (ge (include "replicator.podsOf" (dict "count" $pdb.minAvailable "all" $least) | int) $least) -}}
{{- $problems = append $problems (printf "%s: podDisruptionBudget.minAvailable %v of %d replicas never lets a node drain" $where $pdb.minAvailable $least) -}}
{{- else if and (gt $most 1) $go (eq (toString $pdb.maxUnavailable) "0%") -}}
{{- $problems = append $problems (printf "%s: podDisruptionBudget.maxUnavailable 0%% never lets a node drain" $where) -}}
{{- end -}}
{{- $scaling := $set.autoscaling -}}
{{- if ne $scaling.kind "none" -}}
{{- if lt (int $scaling.maxReplicas) (int $scaling.minReplicas) -}}
{{- $problems = append $problems (printf "%s: autoscaling.maxReplicas %d is less than minReplicas %d" $where (int $scaling.maxReplicas) (int $scaling.minReplicas)) -}}
{{- end -}}
{{- if and (eq $scaling.kind "keda") (not $scaling.prometheusAddress) -}}
{{- $problems = append $problems (printf "%s: autoscaling.kind keda asks Prometheus: give autoscaling.prometheusAddress" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $env := dict "pods" $v.pods.extraEnv "worker" $v.worker.extraEnv "validation" $v.validation.extraEnv "tests" $v.tests.extraEnv "drill" $v.drill.extraEnv "spark" $v.spark.extraEnv -}}
{{- range $entry := $v.workers -}}
{{- $_ := set $env (printf "workers '%s'" (default (default "all" $entry.cluster) $entry.name)) (default list $entry.extraEnv) -}}
{{- end -}}
{{- range $where, $variables := $env -}}
{{- range $variable := $variables -}}
{{- if and (regexMatch "(?i)(password|passwd|secret|token|private_?key)" $variable.name) (hasKey $variable "value") -}}
{{- $problems = append $problems (printf "%s: extraEnv '%s' looks like a secret written in values: use secretEnv" $where $variable.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if and $v.http.tls.certManager.enabled $v.http.tls.existingSecret -}}
{{- $problems = append $problems (printf "http.tls.existingSecret '%s' and http.tls.certManager.enabled: give one of them" $v.http.tls.existingSecret) -}}
{{- end -}}
{{- if and $v.http.tls.certManager.enabled (not (get $v.http.tls.certManager.issuerRef "name")) -}}
{{- $problems = append $problems "http.tls.certManager.enabled: give http.tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- if and $v.monitoring.podMonitor.enabled $v.monitoring.serviceMonitor.enabled -}}
{{- $problems = append $problems "monitoring.podMonitor and monitoring.serviceMonitor are both enabled: every series would come twice" -}}
{{- end -}}
{{- if and $v.spark.jobs (eq $v.spark.mode "none") -}}
{{- $problems = append $problems (printf "spark.mode is none, but spark.jobs has '%s': set the mode to job or operator" (first $v.spark.jobs).name) -}}
{{- end -}}
{{- $threads := regexFind "^local\\[[0-9]+\\]$" $v.spark.master | replace "local[" "" | replace "]" "" -}}
{{- if and $threads (lt (include "replicator.sparkCores" $v.spark.resources | int) (int $threads)) -}}
{{- $problems = append $problems (printf "spark.master %s has more threads than the %s cores of spark.resources" $v.spark.master (include "replicator.sparkCores" $v.spark.resources)) -}}
{{- end -}}
{{- $jobs := list -}}
{{- range $v.spark.jobs -}}
{{- if has .name $jobs -}}{{- $problems = append $problems (printf "spark.jobs '%s': two jobs have this name" .name) -}}{{- end -}}
{{- $jobs = append $jobs .name -}}
{{- $wanted := ternary (list "cluster" "archive" "topics") (list "flow") (eq .command "archive") -}}
{{- $job := . -}}
{{- range $field := list "flow" "cluster" "archive" "topics" -}}
{{- if and (has $field $wanted) (not (get $job $field)) -}}
{{- $problems = append $problems (printf "spark.jobs '%s': %s needs %s" $job.name $job.command $field) -}}
{{- else if and (get $job $field) (not (has $field $wanted)) (ne $field "topics") -}}
{{- $problems = append $problems (printf "spark.jobs '%s': %s takes no %s" $job.name $job.command $field) -}}
{{- end -}}
{{- end -}}
{{- $ends := compact (append (splitList "->" (default "" .flow)) (default "" .cluster)) -}}
{{- range $alias := $ends -}}
{{- if and $aliases (not (has $alias $aliases)) -}}
{{- $problems = append $problems (printf "spark.jobs '%s': '%s' names '%s', which is not in the topology (there are: %s)" $job.name (join "->" $ends) $alias (join ", " $aliases)) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .command "bulk-sync") .schedule -}}
{{- $problems = append $problems (printf "spark.jobs '%s': bulk-sync runs once and hands over, it takes no schedule '%s'" .name .schedule) -}}
{{- end -}}
{{- end -}}
{{- $drills := list -}}
{{- range $v.drills -}}
{{- if has .name $drills -}}{{- $problems = append $problems (printf "drills '%s': two drills have this name" .name) -}}{{- end -}}
{{- $drills = append $drills .name -}}
{{- $link := get (default dict (get .drill "spec")) "link" -}}
{{- if and $links $link (not (has $link $links)) -}}
{{- $problems = append $problems (printf "drills '%s': link '%s' is not in the topology (there are: %s)" .name $link (join ", " $links)) -}}
{{- end -}}
{{- end -}}

{{- if $problems -}}
{{- fail (printf "\n\nThese values cannot work:\n  - %s\n" (join "\n  - " $problems)) -}}
{{- end -}}
{{- end -}}
{{/* Pods that a budget's number or share means; Kubernetes rounds a share up. */}}
{{- define "replicator.podsOf" -}}
{{- if kindIs "string" .count -}}
{{- divf (mulf (trimSuffix "%" .count | float64) .all) 100.0 | ceil | int -}}
{{- else -}}
{{- int .count -}}
{{- end -}}
{{- end -}}
