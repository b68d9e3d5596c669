"""Cloister: k-means over records that belong to several organisations."""
