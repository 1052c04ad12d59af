"""Hidden-model problems in file formats of other fields: POMDPX, Cassandra's `.pomdp`, arrays of parameter draws."""
