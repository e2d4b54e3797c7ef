"""The cache as data: columns of one type each, as rows, frames of pandas, Arrow, tables of SQL."""
