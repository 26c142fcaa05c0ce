"""HTTP: one router per family of resources; they translate and decide nothing."""
