"""Scoring by the protocols of other servers: Open Inference Protocol, MLflow, SageMaker, KServe."""
