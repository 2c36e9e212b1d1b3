"""The command line: main.py runs the command, each command has a module."""
