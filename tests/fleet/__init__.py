"""Tests of many clusters as one."""
