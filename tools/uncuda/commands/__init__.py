"""The subcommands, one module each; the command line finds a module that is put here by itself."""
