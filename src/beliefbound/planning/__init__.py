"""Planners: from models or beliefs to policies and their exact values."""
