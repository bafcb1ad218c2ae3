"""tools/mutate.py: the places of a module, and what each becomes."""

from pathlib import Path

import pytest

from tools import mutate

SOURCE = """
LIMIT = 3


def is_small(x, half=2):
    inner = [y for y in range(x) if y < LIMIT]
    return (
        x is not None
        and not inner
    )
"""
BROKEN = [
    ("3", "(4)", ("LIMIT",), False),
    ("2", "(3)", ("is_small",), False),
    ("y < LIMIT", "((y) <= (LIMIT))", ("inner",), True),
    ("x is not None\n        and not inner", "((x is not None) or (not inner)\n)", (), True),
    ("x is not None", "((x) is (None))", (), True),
    ("not inner", "(bool(inner))", (), True),
]


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    file = tmp_path / "small.py"
    file.write_text(SOURCE)
    found = sorted(mutate.places_of(file), key=lambda place: (place.start, -place.end))
    expected = [
        (SOURCE.replace(was, becomes, 1), names, by_call) for was, becomes, names, by_call in BROKEN
    ]
    broken = [place.broken(SOURCE.encode()).decode() for place in found]
    assert [
        (text, place.names, place.by_call) for text, place in zip(broken, found, strict=True)
    ] == expected
    # functions have the lines that they had, so that code objects can be exchanged
    assert all(mutate.exchanged(place) for place in found)
    lines = [[number for number in range(20) if place.lines >> number & 1] for place in found]
    assert lines == [[2], [5], [6], [7, 8, 9], [7, 8], [7, 8, 9]]
