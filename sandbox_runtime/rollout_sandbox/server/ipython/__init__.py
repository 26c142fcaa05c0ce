"""The IPython tool: one persistent kernel."""
