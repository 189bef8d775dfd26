"""Contracts: study and protocol models, records, Arrow tables, wire values, errors and SQL."""
