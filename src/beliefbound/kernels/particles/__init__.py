"""Particles of a product-Dirichlet belief at any posterior: rows, look-ahead, renewal."""
