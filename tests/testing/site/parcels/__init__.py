"""Parcels, and who may send them."""
