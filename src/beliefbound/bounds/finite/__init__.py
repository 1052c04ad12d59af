"""Bounds for finitely many weighted models: pairs, look-ahead, search, information relaxation, the adaptive policy."""
