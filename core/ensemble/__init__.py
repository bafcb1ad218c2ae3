"""Rankers made of others."""
