"""Formats of log files, one file each, found by `logs.log_formats`."""
