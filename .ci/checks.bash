# The checks of `make test` (all) and `make lint` (static). Every check runs even when one before it fell
# short: one run tells everything that is wrong. The exit code is 0 only if all passed.
set -uo pipefail
kind=${1:-all}
bin=.venv/bin
names=() results=() failed=0

check() { # NAME COMMAND...
  local name=$1 started=$SECONDS result
  shift
  printf '\n=== %s\n' "$name"
  if "$@"; then result=ok; else result=FAILED; failed=1; fi
  names+=("$name ($((SECONDS - started)) s)")
  results+=("$result")
}

skip() { # NAME REASON
  names+=("$1")
  results+=("not run: $2")
}

typed=(processor connectors)
for folder in tests examples; do
  if [ -d "$folder" ]; then typed+=("$folder"); fi
done

check "ruff: rules" "$bin/ruff" check .
check "ruff: format" "$bin/ruff" format --check .
check "import-linter: rooms and ladder" "$bin/lint-imports"
check "mypy: strict" "$bin/mypy" "${typed[@]}"
if [ -d tests/typing ]; then
  check "pyright: what an author sees" "$bin/pyright"
else
  skip "pyright: what an author sees" "there is no tests/typing"
fi

summary() {
  printf '\n=== summary\n'
  for index in "${!names[@]}"; do
    printf '  %-48s %s\n' "${names[$index]}" "${results[$index]}"
  done
}

if [ "$kind" = all ]; then
  summary
  # The tests come last, so that pytest's own closing line is what a reader of the output ends with.
  eval "arguments=(${PYTEST_ARGS:-})" # several words, quoted as on a command line
  check "pytest" "$bin/python" -m pytest tests "${arguments[@]}"
  printf '\nchecks before pytest: %s; pytest: %s\n' \
    "$(printf '%s\n' "${results[@]::${#results[@]}-1}" | grep -q FAILED && echo FAILED || echo ok)" "${results[-1]}"
else
  summary
fi
exit "$failed"
