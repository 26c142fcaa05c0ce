"""From messages to token ids, without ever turning recorded tokens into text and back."""
