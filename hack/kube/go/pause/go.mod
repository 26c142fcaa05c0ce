module rollout-operator.dev/hack/kube/pause

go 1.24.0
