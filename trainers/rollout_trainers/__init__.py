"""Adapters for RL trainers, one module each, imported lazily."""
