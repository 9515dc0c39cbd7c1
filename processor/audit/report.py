"""What an audit says in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from processor.audit.finding import Finding, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """All findings, in the order of the invariants."""

    job: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Nothing failed, and something was looked at."""
        outcomes = [finding.outcome for finding in self.findings]
        return Outcome.PASSED in outcomes and Outcome.FAILED not in outcomes

    def figure(self, invariant: str, name: str) -> int | str:
        """One figure of one invariant, given by its number. Raises KeyError."""
        for finding in self.findings:
            if finding.invariant.split()[0] == invariant:
                return finding.figures[name]
        raise KeyError(invariant)

    def text(self) -> str:
        """One line an invariant, with its figures; what is wrong below it; the verdict last."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        name_width = max((len(finding.invariant) for finding in self.findings), default=0)
        outcome_width = max((len(finding.outcome) for finding in self.findings), default=0)
        for finding in self.findings:
            figures = ", ".join(f"{name} {_shown(value)}" for name, value in finding.figures.items())
            line = f"{finding.invariant:{name_width}}  {finding.outcome:{outcome_width}}  {figures}"
            yield line.rstrip()
            for note in finding.notes:
                yield f"{'':{name_width}}    {note}"
        yield f"audit of job '{self.job}': {'passed' if self.passed else 'FAILED'}"


def _shown(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value
