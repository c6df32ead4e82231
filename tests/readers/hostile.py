"""Readers that misbehave, for the pool's tests: a file's text says how."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path

from memoranda.readers import Document, Limits, Unreadable


def read(path: Path, limits: Limits) -> Document:
    """Does what the file says, and adds a byte to a file beside it for each time that it is read."""
    said = path.read_text()
    with path.with_suffix(".reads").open("ab") as counter:
        counter.write(b".")
        reads = counter.tell()
    match said.split():
        case ["sleep", seconds]:
            time.sleep(float(seconds))
        case ["with", *names]:  # ends once the others are being read
            while not all(path.with_name(f"{name}.reads").exists() for name in names):
                time.sleep(0.01)
        case ["spin"]:
            while True:
                pass
        case ["native", seconds]:
            ctypes.PyDLL(None).sleep(
                int(seconds)
            )  # native code that does not let go of the interpreter's lock
        case ["eat", mebibytes]:
            held = [bytearray(os.urandom(1 << 10) * (1 << 10)) for _ in range(int(mebibytes))]
            time.sleep(0.5)
            assert held
        case ["crash"]:
            ctypes.string_at(0)
        case ["die", times, number]:
            if reads <= int(times):
                print(f"death {reads} is near", file=sys.stderr, flush=True)
                os.kill(os.getpid(), int(number))
                time.sleep(60)
        case ["exit", times, code]:
            if reads <= int(times):
                os._exit(int(code))
        case ["raise"]:
            raise ValueError("odd")
        case ["refuse"]:
            raise Unreadable("invalid_file", "is not to my taste")
        case ["print"]:
            os.write(1, b"\xff" * 100)
            print("noise", flush=True)
        case ["deep"]:
            sys.setrecursionlimit(1_000)
            _deeper()
        case ["child"]:
            if os.fork() == 0:
                time.sleep(300)
                os._exit(0)
            time.sleep(300)
    return Document(text=f"{os.getpid()}", media_type="text/plain")


def _deeper() -> None:
    _deeper()
