"""Bytes that nobody meant, against whatever reads bytes of others."""
