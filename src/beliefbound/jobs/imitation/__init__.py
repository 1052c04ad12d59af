"""From what experts did to a policy, how sure it is, and what they want."""
