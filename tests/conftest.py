"""Puts the repository's root on the path, so that every test can import `tests.factories`."""
