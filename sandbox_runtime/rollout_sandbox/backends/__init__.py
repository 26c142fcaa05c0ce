"""Ways to enter a sandbox; each only describes the program to start."""
