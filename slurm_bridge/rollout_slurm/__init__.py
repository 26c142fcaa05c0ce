"""Virtual node that turns stage pods into Slurm jobs."""
