"""What all parts agree on: resources, trajectories, messages, and where things of a machine are."""
