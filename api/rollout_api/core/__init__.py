"""Decisions without I/O: plain data and the time go in, plain data comes out."""
