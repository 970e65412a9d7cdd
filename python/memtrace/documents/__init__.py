"""The JSON documents of the program as dataclasses, one module for each command."""
