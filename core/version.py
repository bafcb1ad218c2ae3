"""The version of the program: of `core`, `app` and `workers`. The client in `client/` has the same."""

VERSION = "0.4.0.dev0"
