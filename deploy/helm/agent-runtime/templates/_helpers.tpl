{{- /* The beginning of all names. It leaves room for -commands and the version. */}}
{{- define "agent-runtime.fullname" -}}
{{- $name := .Release.Name }}
{{- if not (contains .Chart.Name $name) }}
{{- $name = printf "%s-%s" $name .Chart.Name }}
{{- end }}
{{- $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Labels of a part of the release: (dict "root" $ "component" "api"). */}}
{{- define "agent-runtime.labels" -}}
{{ include "agent-runtime.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The labels by which others find the pods of a part. */}}
{{- define "agent-runtime.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* The part that serves requests. */}}
{{- define "agent-runtime.front" -}}
{{- ternary "api" "all" (eq .Values.mode "split") }}
{{- end }}

{{- /* The parts of this release, by blanks. */}}
{{- define "agent-runtime.components" -}}
{{- $components := list (include "agent-runtime.front" .) }}
{{- if eq .Values.mode "split" }}{{ $components = append $components "worker" }}{{ end }}
{{- if .Values.commands.enabled }}{{ $components = append $components "commands" }}{{ end }}
{{- join " " $components }}
{{- end }}

{{- /* The name of the objects of a part. Those of the role all have no suffix. */}}
{{- define "agent-runtime.component" -}}
{{- $fullname := include "agent-runtime.fullname" .root }}
{{- eq .component "all" | ternary $fullname (printf "%s-%s" $fullname .component) }}
{{- end }}

{{- define "agent-runtime.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end }}
{{- end }}

{{- define "agent-runtime.commandsImage" -}}
{{- $image := .Values.commands.image }}
{{- $repository := $image.repository | default .Values.image.repository }}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default (printf "%s-tools" (.Values.image.tag | default .Chart.AppVersion)) }}
{{- end }}
{{- end }}

{{- /* The security context of a pod; "seccomp" is a profile of the node, or empty. */}}
{{- define "agent-runtime.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  {{- if .seccomp }}
  type: Localhost
  localhostProfile: {{ .seccomp }}
  {{- else }}
  type: RuntimeDefault
  {{- end }}
{{- with .appArmor }}
appArmorProfile:
  type: Localhost
  localhostProfile: {{ . }}
{{- end }}
{{- end }}

{{- define "agent-runtime.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* The Secret as a volume; with all keys, or only with those for the store. */}}
{{- define "agent-runtime.secretVolume" -}}
- name: secrets
  secret:
    secretName: {{ .root.Values.secret.name }}
    defaultMode: 0440
    {{- if .storeOnly }}
    items:
      - key: {{ .root.Values.secret.storeUrl }}
        path: {{ .root.Values.secret.storeUrl }}
      {{- with .root.Values.secret.storeCa }}
      - key: {{ . }}
        path: {{ . }}
      {{- end }}
    {{- end }}
{{- end }}

{{- define "agent-runtime.storeVariable" -}}
- name: AGENT_RUNTIME__STORE__URL_FILE
  value: /run/secrets/agent-runtime/{{ .Values.secret.storeUrl }}
{{- end }}

{{- /* Kills a pod when drain_delay, shutdown_grace and the 12 seconds of the service are over. */}}
{{- define "agent-runtime.terminationGracePeriodSeconds" -}}
{{- add .Values.termination.drainDelaySeconds .Values.termination.graceSeconds 20 }}
{{- end }}

{{- /* The configuration file of the service. Commands read the same sections as their pods. */}}
{{- define "agent-runtime.config" -}}
{{- .Values.config | trim }}
{{- if and .Values.commands.enabled .Values.commands.config }}

{{ .Values.commands.config | trim }}
{{- end }}
{{- end }}

{{- /* Settings of a pod of the role all, api or worker. */}}
{{- define "agent-runtime.variables" -}}
{{- $values := .root.Values }}
{{- $secrets := "/run/secrets/agent-runtime" -}}
- name: AGENT_RUNTIME__HTTP__LISTEN
  value: 0.0.0.0:8080
- name: AGENT_RUNTIME__SHUTDOWN__DRAIN_DELAY
  value: {{ $values.termination.drainDelaySeconds }}s
- name: AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE
  value: {{ $values.termination.graceSeconds }}s
{{ include "agent-runtime.storeVariable" .root }}
{{- if $values.migrate.job }}
- name: AGENT_RUNTIME__STORE__MIGRATE
  value: "false"
{{- end }}
{{- if $values.metrics.enabled }}
- name: AGENT_RUNTIME__METRICS__LISTEN
  value: 0.0.0.0:{{ $values.metrics.port }}
{{- end }}
{{- with $values.secret.boardUrl }}
- name: AGENT_RUNTIME__BOARD__URL_FILE
  value: {{ $secrets }}/{{ . }}
{{- end }}
{{- with $values.secret.mcpStateKey }}
- name: AGENT_RUNTIME__HTTP__MCP__STATE_KEY_FILE
  value: {{ $secrets }}/{{ . }}
{{- end }}
{{- with $values.secret.openaiSealKey }}
- name: AGENT_RUNTIME__OPENAI__SEAL_KEY_FILE
  value: {{ $secrets }}/{{ . }}
{{- end }}
{{- if $values.tls.secret }}
- name: AGENT_RUNTIME__HTTP__TLS__CERTIFICATE
  value: {{ $secrets }}-tls/tls.crt
- name: AGENT_RUNTIME__HTTP__TLS__KEY
  value: {{ $secrets }}-tls/tls.key
{{- end }}
{{- range $name, $key := $values.secret.providers }}
- name: AGENT_RUNTIME__PROVIDERS__{{ $name | upper | replace "-" "_" }}__API_KEY_FILE
  value: {{ $secrets }}/{{ $key }}
{{- end }}
{{- if $values.agents }}
- name: AGENT_RUNTIME__AGENTS__DIRECTORY
  value: /etc/agent-runtime/agents
{{- end }}
{{- if $values.commands.enabled }}
- name: AGENT_RUNTIME__SANDBOX__BACKEND
  value: worker
{{- end }}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What all Deployments have in common, up to the containers of their pods. "replicas" may be
       empty. */}}
{{- define "agent-runtime.deploymentHead" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "agent-runtime.component" . }}
  labels:
    {{- include "agent-runtime.labels" . | nindent 4 }}
spec:
  {{- if ne .replicas nil }}
  replicas: {{ .replicas }}
  {{- end }}
  strategy:
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  selector:
    matchLabels:
      {{- include "agent-runtime.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "agent-runtime.labels" . | nindent 8 }}
      annotations:
        # New pods for a new configuration. A change of agents makes none: reload them.
        checksum/config: {{ .config | sha256sum }}
    spec:
      serviceAccountName: {{ include "agent-runtime.fullname" .root }}
      automountServiceAccountToken: false
      # A Service of this name would otherwise set variables that look like settings.
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ include "agent-runtime.terminationGracePeriodSeconds" .root }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "agent-runtime.selector" . | nindent 14 }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
{{- end }}

{{- /* A Deployment of the role all, api or worker. */}}
{{- define "agent-runtime.deployment" -}}
{{- $values := .root.Values }}
{{- $scheme := ternary "HTTP" "HTTPS" (empty $values.tls.secret) }}
{{- include "agent-runtime.deploymentHead" . }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "agent-runtime.podSecurity" (dict "seccomp" "" "appArmor" "") | nindent 8 }}
      containers:
        - name: agent-runtime
          image: {{ include "agent-runtime.image" .root }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [serve, --role, {{ .component }}, --config, /etc/agent-runtime/config/agent-runtime.toml]
          env:
            {{- include "agent-runtime.variables" . | nindent 12 }}
          ports:
            - name: http
              containerPort: 8080
            {{- if $values.metrics.enabled }}
            - name: metrics
              containerPort: {{ $values.metrics.port }}
            {{- end }}
          # A migration at the start may take long, so it gets half an hour.
          startupProbe:
            httpGet:
              path: /healthz
              port: http
              scheme: {{ $scheme }}
            periodSeconds: 2
            failureThreshold: {{ ternary 60 900 $values.migrate.job }}
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
              scheme: {{ $scheme }}
            periodSeconds: 10
            timeoutSeconds: 3
            failureThreshold: 3
          # Longer than store.acquire_timeout, and a timeout counts as not ready.
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
              scheme: {{ $scheme }}
            periodSeconds: 5
            timeoutSeconds: 6
            failureThreshold: 2
          resources:
            {{- toYaml .resources | nindent 12 }}
          securityContext:
            {{- include "agent-runtime.containerSecurity" .root | nindent 12 }}
          volumeMounts:
            - name: config
              mountPath: /etc/agent-runtime/config
              readOnly: true
            {{- if $values.agents }}
            - name: agents
              mountPath: /etc/agent-runtime/agents
              readOnly: true
            {{- end }}
            - name: secrets
              mountPath: /run/secrets/agent-runtime
              readOnly: true
            {{- if $values.tls.secret }}
            - name: tls
              mountPath: /run/secrets/agent-runtime-tls
              readOnly: true
            {{- end }}
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: config
          configMap:
            name: {{ include "agent-runtime.fullname" .root }}
        {{- if $values.agents }}
        - name: agents
          configMap:
            name: {{ include "agent-runtime.fullname" .root }}-agents
        {{- end }}
        {{- include "agent-runtime.secretVolume" (dict "root" .root "storeOnly" false) | nindent 8 }}
        {{- with $values.tls.secret }}
        - name: tls
          secret:
            secretName: {{ . }}
            defaultMode: 0440
        {{- end }}
        - name: tmp
          emptyDir:
            sizeLimit: 1Gi
{{- end }}
