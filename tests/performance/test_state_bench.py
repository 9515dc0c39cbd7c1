"""The benchmark of large state runs, and finds what it is looking for."""

from __future__ import annotations

import json

import pytest

from tests.performance.state_bench import main


@pytest.mark.parametrize("form", ["files", "entries"])
def test_the_benchmark_of_state_runs(tmp_path, form, capsys):
    result = tmp_path / "state_bench.json"
    assert main(["--quick", "--form", form, "--directory", str(tmp_path), "--result", str(result)]) == 0
    figures = json.loads(result.read_text())
    assert [phase["records"] for phase in figures["phases"]] == [20_000, 20_000]
    assert figures["restores"][0]["state_bytes"] > 20_000 * 100
    assert "new bytes / changed bytes" in capsys.readouterr().out
