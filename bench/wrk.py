"""`wrk -t1` on given bodies: what a client costs that reads tokens and does nothing with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.ground import Unmeasured

SCRIPT = """
-- Requests are made beforehand, so that wrk's CPU is that of sending and reading.
local requests, last = {}, 0
init = function(args)
  local headers = { ["Content-Type"] = "application/json" }
  for body in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", "/v1/chat/completions", headers, body)
  end
end
request = function()
  last = last % #requests + 1
  return requests[last]
end
"""


def cpu_s(port: int, bodies: Sequence[bytes], connections: int, seconds: int, folder: Path) -> float:
    """CPU time of one run of wrk, user and system. Raises `Unmeasured` when there is no wrk."""
    program = shutil.which("wrk")
    if not program:
        raise Unmeasured("wrk is not installed (Debian package wrk)")
    script, lines = folder / "wrk.lua", folder / "bodies.txt"
    script.write_text(SCRIPT)
    lines.write_bytes(b"".join(body + b"\n" for body in bodies))
    command = [program, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s", "-s", str(script)]
    command += [f"http://127.0.0.1:{port}", "--", str(lines)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime
