"""A bounded number of dead letters: one for each name; the one with the oldest last event is dropped first.

Invariant: a book never has more than `limits.DEAD_LETTERS` letters, nor more than `limits.DEAD_LETTERS_BYTES` as text.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tenantry.model import limits
from tenantry.serving.dead_letters.letter import Letter


class Book:
    """Letters in the order of their last event; ``dropped`` counts those that had no room."""

    def __init__(self) -> None:
        self.dropped = 0
        self._letters: dict[tuple[str, str], Letter] = {}

    def __iter__(self) -> Iterator[Letter]:
        return iter(self._letters.values())

    def __len__(self) -> int:
        return len(self._letters)

    def add(self, letter: Letter) -> None:
        """Add a letter, which is later than all before; the first one is dropped when there is no room."""
        before = self._letters.pop(letter.name, None)
        self._letters[letter.name] = letter if before is None else before.joined(letter)
        while len(self._letters) > limits.DEAD_LETTERS:
            self._drop()

    def merge(self, other: Book) -> None:
        """Add the letters of another book, which stays as it is."""
        for letter in other:
            self.add(letter)
        self.dropped += other.dropped
        # Two processes write one book, and what one of them held back for a second may be the older.
        self._letters = dict(sorted(self._letters.items(), key=lambda item: item[1].last))

    def remove(self, *letters: Letter) -> None:
        """Take letters out, except those that have changed since."""
        for letter in letters:
            if self._letters.get(letter.name) == letter:
                del self._letters[letter.name]

    def text(self) -> str:
        """As JSON with a line for each letter; letters beyond the budget of bytes are dropped from the book, too."""
        lines = [json.dumps(letter.document(), ensure_ascii=False, separators=(",", ":")) for letter in self]
        size = sum(len(line.encode()) + 2 for line in lines) + 64
        while size > limits.DEAD_LETTERS_BYTES:
            size -= len(lines.pop(0).encode()) + 2
            self._drop()
        return f'{{"dropped":{self.dropped},"letters":[\n' + ",\n".join(lines) + "\n]}\n"

    @classmethod
    def of(cls, text: str) -> Book:
        """From `text`; what cannot be read is left out."""
        made = cls()
        with contextlib.suppress(KeyError, TypeError, ValueError, RecursionError):
            document: Any = json.loads(text)
            made.dropped = max(0, int(document["dropped"]))
            for each in document["letters"]:
                with contextlib.suppress(ValueError):
                    made.add(Letter.of(each))
        return made

    def _drop(self) -> None:
        del self._letters[next(iter(self._letters))]
        self.dropped += 1
