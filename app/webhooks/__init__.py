"""Webhooks: URLs of receivers to which the events of an owner are sent (Standard Webhooks)."""
