"""Python SDK of the gateway, and the rolloutctl command."""
