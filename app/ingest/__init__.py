"""Reading of an uploaded file into a typed Parquet table: files are streamed, types are determined from all rows, and a
table with errors is rejected.

stream     plain bytes: decompressed, counted, limited
formats    which reader reads a file: csv, arrow (Parquet, Arrow), ndjson; how a CSV is written
rows       what every reader gives: batches of rows, and the hash of a row
roles      which column is label, weight, group or feature; which label value is positive
values     what a number, a date, a category and a missing value are, as text and JSON; value_columns: of whole columns
columns    text or typed columns to numbers, categories and labels, and what a column is by its values
profile    what the columns look like
hints      which column has dates by which rows should be split, and which names what rows belong to
build      the way through all of it; writer: the table as Parquet; pairs: a list of pairs
errors     what is wrong, with line and column
"""
