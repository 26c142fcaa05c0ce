"""Task handlers: what a kind of task needs, and how its result becomes a reward."""
