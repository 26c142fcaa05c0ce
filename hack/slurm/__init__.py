"""A real one-node Slurm cluster for tests and trials, private to the user who starts it."""
