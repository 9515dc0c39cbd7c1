"""An entry is read back as it was written, or named as damaged."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.errors import DamagedFile, JobError
from processor.storage.manifest import decode_entry, decode_published, encode_entry, encode_published
from tests.damage.ways import damages
from tests.unit.storage.entries_made import checkpoint, entries, notes, published, seal


@given(entries)
def test_r05_every_entry_is_read_back_as_it_was_written(entry):
    content = encode_entry(entry)
    assert decode_entry(content, entry.place) == entry
    assert encode_entry(decode_entry(content, entry.place)) == content


@given(notes)
def test_r17_every_note_is_read_back_as_it_was_written(note):
    assert decode_published(encode_published(note)) == note


def test_an_entry_is_json_that_people_can_read():
    document = json.loads(encode_entry(checkpoint(3, 1, 2, states=("a1/count-0/x.state",))))
    assert document["body"]["kind"] == "checkpoint"
    content = document["body"]["content"]
    assert content["subtasks"][0]["keyed"][0]["file"]["name"] == "a1/count-0/x.state"
    assert list(content) == sorted(content)


SAMPLE = checkpoint(3, 1, 2, states=("a1/count-0/x.state",), outboxes=("a1/sink-0/y.outbox",))


@given(st.data())
@settings(max_examples=400)
def test_r08_any_damage_of_an_entry_is_found_and_names_its_place(data):
    content = encode_entry(SAMPLE)
    damaged = data.draw(damages(content))
    if damaged == content:
        return
    with pytest.raises(DamagedFile, match="place 3 of the decision log"):
        decode_entry(damaged, 3)


@pytest.mark.parametrize("bit", range(8))
def test_r08_every_flipped_bit_of_an_entry_is_found(bit):
    content = encode_entry(seal(3, 1))
    for at in range(len(content)):
        with pytest.raises(DamagedFile, match="place 3"):
            decode_entry(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :], 3)


def test_r08_the_entry_of_another_place_is_refused():
    with pytest.raises(DamagedFile, match=r"the entry at place 4 .* is that of place 3"):
        decode_entry(encode_entry(SAMPLE), 4)


def framed(version: int, body: bytes) -> bytes:
    digest = sha256(b"%d\n%s" % (version, body)).hexdigest().encode()
    return b'{\n"format": %d,\n"sha256": "%s",\n"body": %s\n}\n' % (version, digest, body)


def test_an_entry_of_a_newer_release_is_refused_by_both_versions():
    with pytest.raises(DamagedFile, match=r"place 7 .* version 2; this release reads version 1"):
        decode_entry(framed(2, b"{}"), 7)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"no json",
        b'{"kind": "seal", "content": {}}',
        b'{"kind": "seal", "content": [1]}',
        b'{"kind": "treaty", "content": {}}',
        b'{"kind": "seal", "content": {"place": "3"}}',
    ],
)
def test_a_body_with_a_good_checksum_that_is_no_entry_is_refused(body):
    with pytest.raises(DamagedFile, match="place 3"):
        decode_entry(framed(1, body), 3)


def test_an_entry_is_no_note_and_a_note_is_no_entry():
    with pytest.raises(DamagedFile, match="no entry"):
        decode_entry(encode_published(published(1)), 3)
    with pytest.raises(DamagedFile, match="no note"):
        decode_published(encode_entry(SAMPLE))


def test_an_entry_over_the_limit_is_refused_before_it_is_written(monkeypatch):
    monkeypatch.setattr("processor.storage.manifest.MANIFEST_BYTES_MAX", 100)
    with pytest.raises(JobError, match="100"):
        encode_entry(SAMPLE)
