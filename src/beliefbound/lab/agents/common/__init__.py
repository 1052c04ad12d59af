"""What several agents share: EM, optimism, models drawn from a posterior, polynomials of parameters."""
