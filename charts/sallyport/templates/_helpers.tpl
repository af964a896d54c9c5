{{/* Names and labels, and what follows from several values. */}}

{{- define "sallyport.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "sallyport" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-sallyport" (.Release.Name | trunc 42 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "sallyport.selector" -}}
app.kubernetes.io/name: {{ include "sallyport.fullname" . }}
{{- end -}}

{{- define "sallyport.labels" -}}
{{ include "sallyport.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of the console, whose pods are none of the webhooks' Service. */}}
{{- define "sallyport.consoleLabels" -}}
{{ include "sallyport.labels" . | replace (include "sallyport.selector" .) (printf "%s-console" (include "sallyport.selector" .)) }}
{{- end -}}

{{- define "sallyport.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "sallyport.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed if serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sallyport.image" -}}
{{- $repository := required "image.repository is needed: where you have pushed the image, for example --set image.repository=registry.example.com/sallyport" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* Names of the webhooks that may be enabled, as a JSON list. */}}
{{- define "sallyport.webhooks" -}}
{{- $names := .Values.webhooks -}}
{{- with .Values.config.webhooks -}}
{{- $names = list -}}
{{- range . -}}
{{- if ne (toString .enabled) "false" -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* The fields of the configuration file that values set which have no flag, as JSON. What holds anyway is left out. */}}
{{- define "sallyport.settings" -}}
{{- $name := include "sallyport.fullname" . -}}
{{- $r := .Values.registration -}}
{{- $registration := dict -}}
{{- if ne $name "sallyport" -}}
{{- $_ := set $registration "ownPods" (printf "app.kubernetes.io/name=%s" $name) -}}
{{- end -}}
{{- if ne (int $r.timeoutSeconds) 5 -}}
{{- $_ := set $registration "timeoutSeconds" $r.timeoutSeconds -}}
{{- end -}}
{{- if ne (join "," $r.excludedNamespaces) "kube-system,kube-node-lease,kube-public" -}}
{{- $_ := set $registration "excludedNamespaces" $r.excludedNamespaces -}}
{{- end -}}
{{- if $r.sharedNamespace -}}
{{- $_ := set $registration "sharedNamespace" true -}}
{{- end -}}
{{- if eq (toString $r.foreignTerms) "Refuse" -}}
{{- $_ := set $registration "foreignTerms" $r.foreignTerms -}}
{{- end -}}
{{- $authentication := dict -}}
{{- if and (eq .Values.authentication.mode "ClientCA") .Values.authentication.clientCommonNames -}}
{{- $_ := set $authentication "clientCommonNames" .Values.authentication.clientCommonNames -}}
{{- end -}}
{{- $serving := dict -}}
{{- if ne (int .Values.drain.minSeconds) 15 -}}
{{- $_ := set $serving "drainMin" (printf "%ds" (int .Values.drain.minSeconds)) -}}
{{- end -}}
{{- if ne (int .Values.drain.maxSeconds) 95 -}}
{{- $_ := set $serving "drainTimeout" (printf "%ds" (int .Values.drain.maxSeconds)) -}}
{{- end -}}
{{- $settings := dict -}}
{{- range $section, $fields := dict "registration" $registration "authentication" $authentication "serving" $serving -}}
{{- if $fields -}}
{{- $_ := set $settings $section $fields -}}
{{- end -}}
{{- end -}}
{{- $settings | toJson -}}
{{- end -}}

{{/* The configuration file, as JSON: what config says, and these fields. */}}
{{- define "sallyport.config" -}}
{{- mergeOverwrite (deepCopy .Values.config) (include "sallyport.settings" . | fromJson) | toJson -}}
{{- end -}}

{{/* The Secret that the pods have the certificate from; empty for an authority. */}}
{{- define "sallyport.tlsSecret" -}}
{{- if eq .Values.certificate.source "Secret" -}}
{{- required "certificate.secretName is needed with certificate.source Secret" .Values.certificate.secretName -}}
{{- else if eq .Values.certificate.source "CertManager" -}}
{{- printf "%s-tls" (include "sallyport.fullname" .) -}}
{{- end -}}
{{- end -}}
