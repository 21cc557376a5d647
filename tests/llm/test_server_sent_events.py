"""Server-sent events are parsed the same however the bytes are split, with any line ending."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.llm.http import event_data

STREAM = b'data: {"a": 1}\n\n: keep-alive\n\nevent: x\ndata:{"b"\nid: 3\ndata: : 2}\n\n\n\ndata: [DONE]\n\n'
DATA = [b'{"a": 1}', b'{"b"\n: 2}', b"[DONE]"]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("byte_order_mark", [b"", b"\xef\xbb\xbf"])
def test_any_line_ending_and_any_split_give_the_same_events(ending: bytes, byte_order_mark: bytes) -> None:
    stream = byte_order_mark + STREAM.replace(b"\n", ending)
    assert list(event_data([stream])) == DATA
    assert list(event_data(bytes([byte]) for byte in stream)) == DATA
    for at in range(len(stream)):
        assert list(event_data([stream[:at], stream[at:]])) == DATA


def test_the_last_event_needs_no_blank_line_after_it() -> None:
    assert list(event_data([b"data: 1\n\ndata: 2"])) == [b"1", b"2"]
    assert list(event_data([b"data: 1\n\n", b"da", b"ta: 2\n"])) == [b"1", b"2"]


@given(
    st.lists(st.sampled_from([b"data: ", b"data:", b"x", b"\n", b"\r\n", b"\r", b": c", b" "]), max_size=20),
    st.data(),
)
def test_any_split_of_any_bytes_gives_the_same_events(parts: list[bytes], data: Any) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert list(event_data(pieces)) == list(event_data([stream]))
