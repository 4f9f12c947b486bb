"""The `kernelproof` command. Begin at `app`: it lists the commands and turns errors into exit codes.

`app.COMMANDS` says in which module each command is: one of its name, of its group's (`runs`, `service`,
`problems`, `cache`, `db`) or of a command beside it. It reads options, calls `kernelproof.runs`,
`kernelproof.service` or the store, and prints with `kernelproof.report`. `commands` and `declaring` say how
commands and options are declared. `options` holds those that several commands share.
`batch_display` and `display` show progress; `completion` answers a shell.
"""
