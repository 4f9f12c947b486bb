"""The `kernelproof` command. Begin at `app`: it lists the commands and turns errors into exit codes.

A command is a module of its name (`generate`, `import_`, ...) or of its group's (`runs`, `service`,
`problems`, `cache`, `db`): it reads options, calls `kernelproof.runs`, `kernelproof.service` or the store,
and prints with `kernelproof.report`. `commands` and `declaring` say how commands and options are declared.
`options` holds those that several commands share, `generate_options` those that a configuration may set.
`batch_display` and `display` show progress; `completion` answers a shell.
"""
