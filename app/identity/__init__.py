"""Identity providers (OpenID Connect): their keys, and what their tokens state. Imported only if a provider is
configured.
"""
