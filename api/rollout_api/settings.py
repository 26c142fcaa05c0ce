"""What can be set when the gateway starts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the application; where it listens and stores is up to the process."""

    lease_seconds: float = 15.0
    """Life of a lease without a heartbeat."""
    most_body_bytes: int = 64 * 1024 * 1024
    """Larger request bodies are refused."""
