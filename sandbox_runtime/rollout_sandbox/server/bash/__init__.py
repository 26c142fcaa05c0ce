"""The bash tool: one persistent shell on a pseudo-terminal."""
