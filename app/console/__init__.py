"""Web pages for people: every page asks the HTTP API within the process, with the scopes of the key that signed in."""
