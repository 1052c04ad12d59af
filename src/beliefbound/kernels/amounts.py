"""How far apart two rewards may be that are one amount (`beliefs.amounts`): of itself, and of the largest there is."""

RELATIVE, OF_LARGEST = 1e-9, 1e-14
