# Makes a virtual environment in $1 with the newest Python from 3.11 on that this machine has.
# On Debian as root a missing Python is installed; elsewhere the message says what to install.
set -euo pipefail
venv=$1

suits() { # really there, new enough, and able to make environments (Debian keeps ensurepip in a package of its own)
  "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
  local name
  for name in python3.13 python3.12 python3.11 python3; do
    if suits "$name"; then echo "$name"; return; fi
  done
  return 1
}

if [ -x "$venv/bin/python" ] && suits "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  exit 0
fi

if ! python=$(find_python); then
  if [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Python through apt-get ..."
    apt-get update --quiet --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends python3 python3-venv >/dev/null
  fi
  if ! python=$(find_python); then
    cat >&2 <<'MESSAGE'
Python 3.11 or above, with its venv module, is needed and was not found. Install it, then try again:
  Debian, Ubuntu:  sudo apt-get install python3 python3-venv
  Fedora:          sudo dnf install python3
  macOS:           brew install python@3.13
MESSAGE
    exit 1
  fi
fi

echo "Making $venv with $("$python" --version) ..."
rm -rf "$venv"
"$python" -m venv "$venv"
