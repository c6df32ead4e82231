"""Modules that tests of several folders import: `from support.waiting import until`."""
