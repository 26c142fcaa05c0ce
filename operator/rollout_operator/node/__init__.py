"""The local node: a small kubelet that runs pods as processes of one machine."""
