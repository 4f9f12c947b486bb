"""Texts that try to run, to load, to break out of where they stand, or to be read as something else."""

from __future__ import annotations

RUN = "document.title='OWNED'"
"""What a script among them would do: the tests look at the title."""
TEXTS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f'</title></head><body onload="{RUN}">',
    f'<img src=x onerror="{RUN}">',
    f'"><svg onload="{RUN}">',
    f"'><svg><script>{RUN}</script></svg>",
    f'</code></pre><iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"]]><script>{RUN}</script><![CDATA[",
    f"--><script>{RUN}</script><!--",
    f'<a href="javascript:{RUN}">click</a>',
    "<link rel=stylesheet href=https://example.invalid/x.css><style>body{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "<base href=https://example.invalid/><form action=https://example.invalid/><input name=q>",
    f"{{{{ ''.__class__ }}}}{{% set x = 1 %}} ${{{RUN}}} `{RUN}`",
    f'" autofocus onfocus="{RUN}" x="',
    f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;script&#62; \\u003cscript\\u003e \\x3cscript\\x3e",
    "abc\u202egnirts\u202c \u2066x\u2069 \u200bnothing\ufeff\U000e0041",
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b0m\r\b\x7f",
    "\x00\x0b\x0c\ufffe\uffff end",
    f"datum.x; url(https://example.invalid/a.png); expression({RUN})",
)
