"""Files at the edge of the system: read to plain arrays, written aside and renamed. Nothing is executed."""
