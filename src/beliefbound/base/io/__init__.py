"""Files at the edge of the system: read with care, written aside and renamed."""
