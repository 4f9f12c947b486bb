"""What people see: results on a terminal, as pages and as files. Begin at `leaderboard` or `verification`.

Each module prints one thing: `leaderboard` the boards, `show` an attempt, `verification` a verdict with its
evidence and a number measured again, `sample` the attempts of a sample, `progress` a batch. They are made of
the pieces in `layout`, and every text passes `plain`, which takes out what would steer a terminal.
`board_columns` names the columns of exported scores; `export` writes the formats of other tools, `web` the
pages.
"""
