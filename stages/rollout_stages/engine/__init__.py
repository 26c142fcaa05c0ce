"""The way to an inference server, in token ids."""
