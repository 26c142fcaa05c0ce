"""Asynchronous use cases: they call the store, wait for changes, and hold no state of their own."""
