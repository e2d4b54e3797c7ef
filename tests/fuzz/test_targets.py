"""What fuzzing starts from, and what it once found, breaks no promise."""

from __future__ import annotations

import pytest

from tests.fuzz.corpus import CORPUS
from tests.fuzz.targets import TARGETS, list_body

INPUTS = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", INPUTS, ids=str)
def test_an_input_of_the_corpus_breaks_no_promise(path: object) -> None:
    """Each is taken or refused, and alike by both ways that there are."""
    found = CORPUS / str(path)
    TARGETS[found.parent.name](found.read_bytes())


def test_every_target_has_a_corpus() -> None:
    """And there is none without a target."""
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)


def test_a_target_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cutter that loses the last item is found by the first input."""
    monkeypatch.setattr(
        "dyninformer.watching.cutting.ItemCutter._take_last", lambda _s, data, _i: data[-2:]
    )
    with pytest.raises(AssertionError):
        list_body((CORPUS / "list_body" / "custom").read_bytes())
