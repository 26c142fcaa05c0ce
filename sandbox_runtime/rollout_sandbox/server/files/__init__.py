"""The file tool: read, write, list, and archives of declared paths."""
