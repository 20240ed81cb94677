"""Reports: the same outcomes for people and for machines."""
