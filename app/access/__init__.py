"""Who may use the service: keys, scopes, quotas, the audit log."""
