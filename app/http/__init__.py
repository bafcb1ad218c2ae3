"""HTTP only: routes, schemas, dependencies, problem+json."""
