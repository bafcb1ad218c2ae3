"""Web pages of the console. Every page calls the HTTP API in the same process, with the scopes of the key that signed
in.
"""
