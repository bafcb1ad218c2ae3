"""Rankers as ONNX graphs, SQL queries and Python files: one program of trees and lines, and a writer per format."""
