"""Who may come in: keys, scopes, quotas, the audit trail."""
