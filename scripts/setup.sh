#!/usr/bin/env bash
# Makes .venv with everything that fairseq_milk, its tests and its examples need. Run again, it finishes at once.
#
#   scripts/setup.sh               .venv
#   scripts/setup.sh --simuleval   also .venv-simuleval: SimulEval and its older versions of packages, on top of .venv
#   scripts/setup.sh --docs        also .venv-docs: on top of .venv, with the packages that build the documentation
#
#   PYTHON         the interpreter, 3.10 to 3.12 (default python3)
#   TORCH_VERSION  another torch than the one in scripts/constraints.txt
#   LOCK           "no": the newest versions that scripts/constraints.txt allows, not those of scripts/lock
#
# scripts/lock has the tested versions with the hashes of their files, for one Python on one platform; elsewhere, and with
# another torch, the versions are those that scripts/constraints.txt allows. scripts/lock.py writes it.
#
# fairseq's own build requirements ask for the newest torch, several gigabytes of it. So torch comes first, at its pinned
# version, and fairseq is built against that one (--no-build-isolation). pip keeps the wheel, so the next set-up is fast.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
python=${PYTHON:-python3}
log=/dev/null

die() {
  echo "setup: $*" >&2
  exit 1
}

# The stamp of an environment is `unfinished`, or `PLACE CONTENTS`: digests of its path and Python, and of what was
# installed (`failed` if pip failed: packages are then added to it). An unfinished environment was interrupted and is
# made again. One without a stamp was made by someone else: packages are added to it, and it is never removed.
stamp_of() { echo "$1/.setup-stamp"; }

read_stamp() { cat "$(stamp_of "$1")" 2>/dev/null || true; }

digest() {
  "$python" - "$@" <<'PY'
import hashlib, os, sys
root, *files = sys.argv[1:]
digest = lambda *parts: hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
contents = [open(name, encoding="utf-8").read() for name in files]
contents += [os.environ.get("TORCH_VERSION", ""), os.environ.get("LOCK", "")]
print(digest(root, sys.version, os.path.realpath(sys.executable)), digest(*contents))
PY
}

check_python() {
  local version
  command -v "$python" >/dev/null || die "there is no '$python' here: install Python 3.10 to 3.12, or set PYTHON to it."
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || die "'$python' does not run."
  case $version in
    3.10 | 3.11 | 3.12) ;;
    *) die "'$python' is Python $version, and fairseq needs 3.10 to 3.12: set PYTHON to one of these." ;;
  esac
  # In an activated environment python3 belongs to it, and it could be the one that is replaced: use its base interpreter.
  python=$("$python" -c 'import sys; print(sys.executable if sys.prefix == sys.base_prefix else sys._base_executable)')
}

check_builds() {
  local compiler=${CXX:-c++} include
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    die "'$python' has no venv module: install it (Debian and Ubuntu: apt-get install python3-venv)."
  command -v "${compiler%% *}" >/dev/null ||
    die "there is no C++ compiler '$compiler', which fairseq is built with: install one (Debian and Ubuntu: apt-get install g++)."
  include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ -f $include/Python.h ]] ||
    die "'$python' has no header files, which fairseq is built with: install them (Debian and Ubuntu: apt-get install python3-dev)."
}

# One set-up at a time: the lock is on descriptor 9, which this shell and its children keep open.
take_lock() {
  exec 9>.setup.lock
  "$python" - <<'PY' || die "another set-up here did not end: remove $root/.setup.lock if there is none."
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("setup: another set-up is running here: waiting for it", flush=True)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError as error:  # a file system without locks
    print(f"setup: {error.strerror}: run no other set-up here meanwhile", file=sys.stderr)
PY
}

lock_applies() {
  local here
  here=$("$python" -c 'import platform, sys; print("#", sys.platform, platform.machine(), "%d.%d" % sys.version_info[:2])')
  [[ -z ${TORCH_VERSION:-} && ${LOCK:-yes} != no && $(head -n 1 scripts/lock/build.txt) == "$here" ]]
}

step() {
  local what=$1 start=$SECONDS
  shift
  printf '  %s ... ' "$what"
  if ! "$@" >>"$log" 2>&1; then
    printf 'failed\n'
    tail -n 15 "$log" >&2
    die "'$what' failed: the end of $log is above."
  fi
  printf '%d s\n' $((SECONDS - start))
}

make_venv() {
  local venv=$1 place=$2 stamp
  shift 2
  stamp=$(read_stamp "$venv")
  rm -rf "$venv.old"
  rmdir "$venv" 2>/dev/null || true
  if [[ -n $stamp && $stamp != "$place "* ]]; then # interrupted, or copied from elsewhere, or for another Python
    mv "$venv" "$venv.old"                         # at once: half of an environment is never left under its name
    rm -rf "$venv.old"
  fi
  if [[ -n $stamp || ! -e $venv ]]; then
    mkdir -p "$venv"
    echo unfinished >"$(stamp_of "$venv")"
  fi
  [[ -n $stamp || -f $venv/pyvenv.cfg || -f $(stamp_of "$venv") ]] ||
    die "$root/$venv is in the way and is not a virtual environment: remove it."
  log=$root/$venv/setup.log
  : >"$log"
  [[ -x $venv/bin/python ]] || step "$venv with $("$python" --version)" "$python" -m venv "$@" "$venv"
}

# --no-compile: Python compiles what is imported when it is imported, which takes a third off the whole set-up.
pip_install() {
  local venv=$1 place=$2
  shift 2
  PIP_REQUIRE_VIRTUALENV=1 "$venv/bin/python" -m pip install --no-compile --progress-bar off --no-input --disable-pip-version-check \
    -c "$root/.venv/constraints.txt" "$@" && return
  [[ ! -f $(stamp_of "$venv") ]] || echo "$place failed" >"$(stamp_of "$venv")"
  return 1
}

# The hash of every file is checked, and nothing is installed that is not in the list.
pip_locked() {
  pip_install "$1" "$2" --require-hashes --no-deps --no-build-isolation -r "$root/scripts/lock/$3.txt" && return
  echo "LOCK=no scripts/setup.sh installs other versions, without comparing hashes."
  return 1
}

# The build for CPUs where pip finds it (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS), or PyPI's, whose CUDA libraries follow later.
torch_locked() { pip_locked "$1" "$2" torch-cpu || pip_locked "$1" "$2" torch; }

set_up() {
  local key=$1 place=${1% *}
  check_builds
  make_venv .venv "$place"
  if [[ -n ${TORCH_VERSION:-} ]]; then
    { grep -v '^torch==' scripts/constraints.txt && echo "torch==$TORCH_VERSION"; } >.venv/constraints.txt
  else
    cp scripts/constraints.txt .venv/constraints.txt
  fi
  if lock_applies; then
    step "what builds fairseq, as locked" pip_locked .venv "$place" build
    step "torch, as locked" torch_locked .venv "$place"
    step "fairseq and the tools, as locked (the first time fairseq is compiled: some 4 minutes)" pip_locked .venv "$place" main
    step "fairseq_milk" pip_install .venv "$place" --no-build-isolation -e '.[train,test]'
  else
    echo "  scripts/lock does not apply (another Python, platform or torch, or LOCK=no): versions by scripts/constraints.txt"
    step "torch and what builds fairseq" pip_install .venv "$place" pip setuptools wheel cython numpy torch
    if "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 11))'; then
      # The source archive of 0.12.2 lacks the files of its torch extensions: it is built without torch, in isolation.
      step "fairseq 0.12.2" pip_install .venv "$place" fairseq==0.12.2
    fi
    step "fairseq, the tools and fairseq_milk (the first time fairseq is compiled: some 4 minutes)" \
      pip_install .venv "$place" --no-build-isolation -e '.[train,test]'
  fi
  step "does it import" .venv/bin/python -W ignore -c 'import fairseq, torch'
  echo "$key" >"$(stamp_of .venv)"
}

# An environment on top of .venv: its packages can be imported too, after those of one extra of setup.py.
set_up_above() {
  local extra=$1 module=$2 key=$3 venv=.venv-$1 place=${3% *}
  make_venv "$venv" "$place" --without-pip
  # Its own packages come first on the path, then those of .venv, pip among them, whose own .pth files are followed.
  "$venv/bin/python" - "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PY'
import pathlib, sys, sysconfig
pth = pathlib.Path(sysconfig.get_path("purelib")) / "zz_fairseq_milk_venv.pth"
pth.write_text("import site; site.addsitedir(%r)\n" % sys.argv[1])
PY
  if lock_applies; then
    step "$extra, as locked" pip_locked "$venv" "$place" "$extra"
  else
    step "$extra" pip_install "$venv" "$place" "fairseq-milk[$extra]"
  fi
  step "does it import" "$venv/bin/python" -W ignore -c "import fairseq, $module"
  echo "$key" >"$(stamp_of "$venv")"
}

main() {
  local extra="" module="" start=$SECONDS key
  case "$#:${1:-}" in
    0:) ;;
    1:--simuleval) extra=simuleval module=simuleval ;;
    1:--docs) extra=docs module=mkdocs ;;
    *) die "usage: scripts/setup.sh [--simuleval | --docs]" ;;
  esac
  trap 'echo; echo "setup: interrupted; run it again to finish." >&2; exit 130' INT TERM
  check_python
  take_lock
  key=$(digest "$root" setup.py scripts/constraints.txt scripts/setup.sh scripts/lock/*.txt)
  [[ $(read_stamp .venv) == "$key" ]] || set_up "$key"
  [[ -z $extra || $(read_stamp ".venv-$extra") == "$key" ]] || set_up_above "$extra" "$module" "$key"
  echo "set up in $((SECONDS - start)) s: .venv/bin/python"
}

main "$@"
