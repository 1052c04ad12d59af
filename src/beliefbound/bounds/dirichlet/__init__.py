"""Bounds for product-Dirichlet beliefs, by simulation under the belief and renewed particles."""
