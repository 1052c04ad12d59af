"""The graph of beliefs reachable from a finite belief, and what is proven on it."""
