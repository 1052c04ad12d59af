"""What knowing more would be worth."""
