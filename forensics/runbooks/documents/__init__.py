"""Files taken apart into queries, commands, log patterns and prose, one module per kind of file."""
