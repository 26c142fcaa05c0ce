{{- define "rollout.labels" -}}
app.kubernetes.io/name: rollout-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: rollout-operator
{{- end -}}

{{/* What the operator may do where the resources are. */}}
{{- define "rollout.operatorRules" -}}
- apiGroups: [rollout-operator.dev]
  resources: [rolloutjobs, rolloutpools, llmpools]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [rollout-operator.dev]
  resources: [rolloutjobs/status, rolloutpools/status, llmpools/status]
  verbs: [patch]
# Pods name their owner and block its deletion, which asks for the right to its finalizers.
- apiGroups: [rollout-operator.dev]
  resources: [rolloutjobs/finalizers, rolloutpools/finalizers, llmpools/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, patch]
{{- end -}}
