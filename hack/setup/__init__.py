"""Set-up of the real components that demos and tests use; run `python3 -m hack.setup`."""
