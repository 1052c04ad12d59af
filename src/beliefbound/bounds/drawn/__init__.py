"""Bounds of any belief that can draw models: fresh models, sets of them, and policies valued on them."""
