{{- define "lethe.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "lethe.selector" -}}
app.kubernetes.io/name: lethe
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lethe.labels" -}}
{{ include "lethe.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* lethe.yaml: what the user stated, with the instance of the pod and an address that probes can reach. */}}
{{- define "lethe.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if hasKey $config "instance" }}{{ fail "config.instance: the chart sets it to the pod's name; remove it" }}{{ end -}}
{{- if hasKey $config "http" }}{{ fail "config.http: the chart sets it; use http.port" }}{{ end -}}
{{- $_ := set $config "instance" "${HOSTNAME}" -}}
{{- $_ := set $config "http" (printf "0.0.0.0:%d" (int .Values.http.port)) -}}
{{- if not .Values.resources }}{{ $_ := set $config "memory" ($config.memory | default "1GiB") }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* A size of lethe's ("1GiB", "512MiB", "2G") in MiB. */}}
{{- define "lethe.mebibytes" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9.]+" $text | float64 -}}
{{- $unit := regexReplaceAll "^[0-9.]+ *" $text "" -}}
{{- $of := dict "" (divf 1.0 1048576.0) "B" (divf 1.0 1048576.0) "KiB" (divf 1.0 1024.0) "MiB" 1.0 "GiB" 1024.0 "TiB" 1048576.0 "kB" (divf 1000.0 1048576.0) "KB" (divf 1000.0 1048576.0) "K" (divf 1000.0 1048576.0) "MB" (divf 1000000.0 1048576.0) "M" (divf 1000000.0 1048576.0) "GB" (divf 1000000000.0 1048576.0) "G" (divf 1000000000.0 1048576.0) -}}
{{- if not (hasKey $of $unit) }}{{ fail (printf "config.memory: %q is no size; write 512MiB or 2GiB" $text) }}{{ end -}}
{{- ceil (mulf $number (get $of $unit)) | int64 -}}
{{- end -}}

{{/* memory, and beside it each lane's records, a snapshot while it is written, schemas, and the program itself. */}}
{{- define "lethe.memoryLimit" -}}
{{- $memory := include "lethe.mebibytes" (.Values.config.memory | default "1GiB") | int64 -}}
{{- $lanes := int (.Values.config.lanes | default 1) -}}
{{- $lane := ternary 384 192 (eq (.Values.config.scope | default "partition") "topic") -}}
{{- $snapshot := ternary (div $memory 4) 0 (hasKey .Values.config "snapshots") -}}
{{- $schemas := ternary 64 0 (hasKey .Values.config "schema_registry") -}}
{{- add $memory (mul $lanes $lane) $snapshot $schemas 64 -}}Mi
{{- end -}}

{{/* What the pods of lethe and of its check share: who they are, where they run, what they may do. */}}
{{- define "lethe.pod" -}}
serviceAccountName: {{ .Values.serviceAccount.name | default (include "lethe.name" .) }}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of their containers: the image, and what they read. */}}
{{- define "lethe.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  # The pod's name is the instance: it stays when the pod is replaced (static membership).
  - name: HOSTNAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- with .Values.env }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with .Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "lethe.volumeMounts" -}}
- name: config
  mountPath: /etc/lethe/lethe.yaml
  subPath: lethe.yaml
  readOnly: true
{{- range .Values.secrets }}
- name: secret-{{ .name }}
  mountPath: /etc/lethe/secrets/{{ .name }}
  readOnly: true
{{- end }}
{{- range .Values.configMaps }}
- name: configmap-{{ .name }}
  mountPath: /etc/lethe/configmaps/{{ .name }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lethe.volumes" -}}
- name: config
  configMap:
    name: {{ include "lethe.name" . }}
{{- range .Values.secrets }}
- name: secret-{{ .name }}
  secret:
    secretName: {{ .name }}
    defaultMode: 0440
{{- end }}
{{- range .Values.configMaps }}
- name: configmap-{{ .name }}
  configMap:
    name: {{ .name }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
