"""Markov chains over what demonstrators want."""
