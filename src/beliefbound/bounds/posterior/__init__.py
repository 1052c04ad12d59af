"""What policies are worth under the posterior: values on fresh models, risk, and choosing with an objective."""
