"""The command tool: one-shot programs with exact exit codes."""
