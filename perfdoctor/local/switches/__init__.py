"""What can be changed about how the local model is run: one file each, all off unless asked for.

A switch file holds the constant SWITCH and imports torch only inside functions: the parent reads the names
and values to refuse a wrong one before anything is started.
"""
