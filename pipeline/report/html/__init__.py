"""The report: one HTML file that needs no network, from the query layer's answers and stored attempts.

`gathering` asks the store, `charts` says what is drawn, `drawing` draws it, `code` colours programs and
diffs, `words` writes the summary, `page` puts all of it into the templates.
"""
