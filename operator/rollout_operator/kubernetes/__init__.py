"""The operator on Kubernetes: the ports over its API, and kopf to watch it.

Imported only when it runs there: the embedded operator loads none of its libraries.
"""
