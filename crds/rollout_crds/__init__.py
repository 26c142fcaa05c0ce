"""The resources, the trajectory and the messages between components, as pydantic models."""
