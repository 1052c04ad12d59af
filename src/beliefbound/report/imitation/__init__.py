"""What was found from demonstrations, as sentences, pictures and a page."""
