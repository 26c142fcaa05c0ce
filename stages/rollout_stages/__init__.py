"""INIT, RUN and EVAL workers."""
