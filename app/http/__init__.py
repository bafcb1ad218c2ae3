"""Code about HTTP only: server, middleware, dependencies, base schemas, problem+json."""
