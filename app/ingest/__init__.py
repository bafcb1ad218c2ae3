"""From an uploaded file to a typed table: read in streams, judged over all rows, written as Parquet or refused.

stream     plain bytes: decompressed, counted, limited
delimited  CSV, in blocks side by side              dialect   how it is written
columnar   Parquet, Arrow                           ndjson    JSON lines
roles      which column is label, weight, group or feature; which label value is positive
evidence   is a column numbers, dates or text       missing   what stands for no value
numerals   what is a number                         decimals  typed numbers to the nearest double
convert    text or typed columns to numbers         profile   what the columns look like
sources    which of the readers reads a file        build     the way through all of it
faults     what is wrong, with line and column
"""
