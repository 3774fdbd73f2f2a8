{{- define "sandpool.name" -}}
{{- if contains "sandpool" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-sandpool" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sandpool.selector" -}}
app.kubernetes.io/name: sandpool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sandpool.labels" -}}
{{ include "sandpool.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sandpool.image" -}}
{{- if not .Values.image.repository }}{{ fail "image.repository must name the image that deploy/Dockerfile builds, in a registry from which the nodes can pull it, such as registry.example.com/sandpool" }}{{ end }}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The namespaces of the teams, as a JSON list. */}}
{{- define "sandpool.tenantNamespaces" -}}
{{- $pattern := .Values.namespacePattern }}
{{- $namespaces := list }}
{{- range .Values.teams }}{{ $namespaces = append $namespaces (replace "{team}" . $pattern) }}{{ end }}
{{- toJson (uniq $namespaces) }}
{{- end }}

{{- define "sandpool.secretsName" -}}
{{ .Values.secrets.existing | default (include "sandpool.name" .) }}
{{- end }}

{{- /* Not empty where the cluster is a manager's, or a manager itself. */}}
{{- define "sandpool.inFleet" -}}
{{- if or (eq .Values.role "manager") .Values.fleet.managers }}yes{{ end }}
{{- end }}

{{- /* The host names by which E2B's SDKs find their API, and ports of sandboxes, as a JSON list. */}}
{{- define "sandpool.compatibleHosts" -}}
{{- if not .Values.service.compatiblePort }}{{ fail "service.compatiblePort must not be 0 if compatibleApi is enabled" }}{{ end }}
{{- if not .Values.compatibleApi.domain }}{{ fail "compatibleApi.domain must be the domain of the API for the SDKs of E2B" }}{{ end }}
{{- list (printf "api.%s" .Values.compatibleApi.domain) (printf "*.%s" .Values.compatibleApi.domain) | toJson }}
{{- end }}

{{- define "sandpool.redisName" -}}
{{ include "sandpool.name" . }}-redis
{{- end }}

{{- define "sandpool.redisImage" -}}
{{- $image := .Values.redis.bundled.image }}
{{- with .Values.sandboxes.registry }}{{ if hasPrefix "docker.io/" $image }}{{ $image = printf "%s/%s" . (trimPrefix "docker.io/" $image) }}{{ end }}{{ end }}
{{- if and .Values.redis.bundled.digest (contains "@" $image) }}{{ fail "redis.bundled.image names a digest: redis.bundled.digest must be empty" }}{{ end }}
{{- $image }}{{ with .Values.redis.bundled.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "sandpool.redisConfig" -}}
include /etc/redis/secret/password.conf
dir /data
appendonly yes
appendfsync everysec
save ""
maxmemory {{ .Values.redis.bundled.maxMemory }}
maxmemory-policy noeviction
{{- end }}

{{- define "sandpool.redisSelector" -}}
app.kubernetes.io/name: sandpool-redis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The Secret with Redis' password; empty where it has none. */}}
{{- define "sandpool.redisSecret" -}}
{{- if .Values.redis.existingSecret }}{{ .Values.redis.existingSecret }}{{ else if .Values.redis.bundled.enabled }}{{ include "sandpool.redisName" . }}{{ end }}
{{- end }}

{{- /* What of the daemon's settings follows from the chart, over what `config` has. */}}
{{- define "sandpool.config" -}}
{{- if and (not .Values.redis.urls) (not .Values.redis.bundled.enabled) }}{{ fail "redis.urls must name a Redis if redis.bundled.enabled is false" }}{{ end }}
{{- if and .Values.redis.urls .Values.redis.bundled.enabled }}{{ fail "redis.urls names a Redis: redis.bundled.enabled must be false" }}{{ end }}
{{- if and .Values.redis.existingSecret .Values.redis.bundled.enabled }}{{ fail "redis.existingSecret is for the Redis of redis.urls; the bundled Redis has its own Secret" }}{{ end }}
{{- $redis := dict "urls" (.Values.redis.urls | default (list (printf "redis://%s:6379" (include "sandpool.redisName" .)))) "mode" .Values.redis.mode "prefix" .Values.redis.prefix }}
{{- if .Values.redis.username }}{{ $_ := set $redis "username" .Values.redis.username }}{{ end }}
{{- if include "sandpool.redisSecret" . }}{{ $_ := set $redis "passwordFile" "/etc/sandpool/redis/password" }}{{ end }}
{{- if .Values.redis.withCa }}{{ $_ := set $redis "caFile" "/etc/sandpool/redis/ca.crt" }}{{ end }}
{{- $own := dict "assembly" "kubernetes" "dataDir" "/var/lib/sandpool" "secretsDir" "/etc/sandpool/secrets" "namespacePattern" .Values.namespacePattern "redis" $redis }}
{{- if .Values.tls.existingSecret }}{{ $_ := set $own "tls" (dict "certFile" "/etc/sandpool/tls/tls.crt" "keyFile" "/etc/sandpool/tls/tls.key") }}{{ end }}
{{- if .Values.clusterId }}{{ $_ := set $own "clusterId" .Values.clusterId }}{{ end }}
{{- if include "sandpool.inFleet" . }}
{{- if not .Values.clusterId }}{{ fail "clusterId must be set if this cluster is in a fleet" }}{{ end }}
{{- if and (eq .Values.role "manager") .Values.fleet.managers }}{{ fail "fleet.managers must be empty if role is manager: a manager cannot be a worker of another manager" }}{{ end }}
{{- if and .Values.fleet.managers (not .Values.fleet.joinTokenSecret) }}{{ fail "fleet.joinTokenSecret must name a Secret with the key token, which sandpool clusters join-token prints at the manager" }}{{ end }}
{{- $_ := set $own "role" .Values.role }}
{{- $fleet := dict "managers" .Values.fleet.managers "addresses" .Values.fleet.addresses }}
{{- if .Values.fleet.managers }}{{ $_ := set $fleet "joinTokenFile" "/etc/sandpool/fleet/token" }}{{ end }}
{{- $_ := set $own "fleet" $fleet }}
{{- end }}
{{- if .Values.audit.stdout }}{{ $_ := set $own "audit" (dict "stdout" "on") }}{{ end }}
{{- if .Values.instanceTypes }}{{ $_ := set $own "instanceTypes" (dict "file" "instance-types.yaml") }}{{ end }}
{{- $kubernetes := dict }}
{{- if not .Values.protectSandboxes }}{{ $_ := set $kubernetes "protectSandboxes" "off" }}{{ end }}
{{- with .Values.sandboxes.runtimeClassName }}{{ $_ := set $kubernetes "runtimeClassName" . }}{{ end }}
{{- with .Values.sandboxes.registry }}{{ $_ := set $kubernetes "registry" . }}{{ end }}
{{- if .Values.sandboxes.labels }}
{{- $labels := list }}
{{- range $name, $value := .Values.sandboxes.labels }}{{ $labels = append $labels (printf "%s=%s" $name $value) }}{{ end }}
{{- $_ := set $kubernetes "podLabels" $labels }}
{{- end }}
{{- if $kubernetes }}{{ $_ := set $own "kubernetes" $kubernetes }}{{ end }}
{{- $usual := dict "listen" "0.0.0.0:8080" "shutdownDelay" "5s" "metrics" (dict "listen" "0.0.0.0:9090") "compatibleApi" (dict "listen" "0.0.0.0:8081") }}
{{- with .Values.compatibleApi.domain }}{{ $_ := set $usual.compatibleApi "domain" . }}{{ end }}
{{- if not .Values.service.compatiblePort }}{{ $_ := set $own "compatibleApi" (dict "listen" "none") }}{{ end }}
{{- toYaml (mergeOverwrite $usual (deepCopy .Values.config) $own) }}
{{- end }}

{{- define "sandpool.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
