"""What can go wrong between bridge, Slurm and gateway, by what the bridge does about it."""


class BridgeError(Exception):
    """Base of all; the message has the words of the other side."""


class SlurmRefused(BridgeError):
    """Slurm understood and said no: the same again will not do until somebody changes something."""


class SlurmUnavailable(BridgeError):
    """Slurm did not answer, and did nothing."""


class SlurmUncertain(SlurmUnavailable):
    """Slurm did not answer, and may have done it all the same."""
