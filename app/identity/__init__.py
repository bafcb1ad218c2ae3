"""Identity providers (OpenID Connect): their keys, and what tokens state. Imported only if one is configured."""
