"""Readers of what other tools printed. Each finds its own lines; what nobody reads is named, never guessed.

A reader turns text into samples under the names that the probes use, so that signals, laws, ledger and
rules treat pasted output like a run of our own. It judges nothing. Add one: one file with the constant
READER.
"""
