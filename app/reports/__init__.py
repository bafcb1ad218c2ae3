"""Reports and plots of models and datasets."""
