"""Models of LightGBM and XGBoost as rankers: readers of their files, and the ranker that scores with their trees."""
