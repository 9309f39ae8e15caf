"""A process as a container engine starts it: a read-only root file system and a user nobody knows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

USER_ID = 1_234_567_890
"""As OpenShift gives: no name, no home, no group but 0."""

ROOT = Path(__file__).resolve().parents[2]

# In a mount namespace of its own: what lies in root's home, which the user may not enter, is put under
# an empty one; then everything but the scratch folder is made read-only, and all rights are given up.
_ENTER = """
set -e
mount --make-rprivate /
mount --bind "$SCRATCH" "$SCRATCH"
if [ -n "$NEEDED" ]; then
  number=0
  for place in $NEEDED; do
    number=$((number + 1))
    mkdir "$SCRATCH/$number" && mount --bind "$place" "$SCRATCH/$number"
  done
  mount -t tmpfs -o mode=755 tmpfs /root
  number=0
  for place in $NEEDED; do
    number=$((number + 1))
    mkdir -p "$place" && mount --move "$SCRATCH/$number" "$place" && rmdir "$SCRATCH/$number"
  done
fi
for place in $(cut -d ' ' -f 2 /proc/self/mounts | sort -u); do
  case "$place" in
    "$SCRATCH"|/proc*|/sys*|/dev*) ;;
    *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;;
  esac
done
exec setpriv --reuid="$USER_ID" --regid=0 --clear-groups --no-new-privs --bounding-set=-all -- "$@"
"""


def why_not() -> str:
    """Why this machine cannot do it; nothing when it can."""
    for tool in ("unshare", "setpriv", "mount"):
        if shutil.which(tool) is None:
            return f"'{tool}' is missing"
    if os.geteuid() != 0:
        return "only root may make mount namespaces"
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "--make-rprivate", "/"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "this machine lets nobody make mount namespaces"


def contained(command: list[str], *, scratch: Path) -> tuple[list[str], dict[str, str]]:
    """The command inside the container, and its environment; only ``scratch`` can be written."""
    scratch.chmod(0o777)
    homes = {Path(sys.base_prefix), Path(sys.prefix), ROOT}
    needed = sorted(str(place) for place in homes if place.is_relative_to("/root"))
    environment = {
        "SCRATCH": str(scratch), "NEEDED": " ".join(needed), "USER_ID": str(USER_ID),
        "TMPDIR": str(scratch), "HOME": str(scratch), "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return ["unshare", "--mount", "sh", "-c", _ENTER, "sh", *command], environment


def proportional_bytes(pid: int) -> int:
    """Memory of a process as a container is charged for it: shared pages are split."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended meanwhile
    return next(
        int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")
    )
