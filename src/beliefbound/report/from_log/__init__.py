"""What was found from a log, as sentences, pictures and a page."""
