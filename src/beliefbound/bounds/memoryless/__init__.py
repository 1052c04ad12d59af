"""The best memoryless policy, proven: by branch and bound, and as an integer programme."""
