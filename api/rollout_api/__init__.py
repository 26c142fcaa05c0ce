"""The gateway: HTTP, queue, store and LLM pool."""
