"""What everything stands on: errors, checks, limits of size, names as text, plugins, files, executors, progress."""
