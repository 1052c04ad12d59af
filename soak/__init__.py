"""Hours of rough treatment, for `make soak`; the tests run the same in small."""
