"""A page taken apart, as its tests look at it."""

from __future__ import annotations

from html.parser import HTMLParser


class Parsed(HTMLParser):
    """Elements with their attributes, and the text outside style and script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.within: dict[str, str] = {}
        self._current = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._current = tag

    def handle_endtag(self, tag: str) -> None:
        self._current = ""

    def handle_data(self, data: str) -> None:
        if self._current in ("style", "script"):
            self.within[self._current] = data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)
