"""Makes `.venv` with everything Memoranda needs; needs nothing but python3 itself.

    python3 scripts/bootstrap.py          what `./run` needs
    python3 scripts/bootstrap.py --dev    what `./test` needs
    python3 scripts/bootstrap.py --lock   pins in requirements/ what pyproject.toml needs and is not pinned yet
    python3 scripts/bootstrap.py --lock --upgrade   pins the newest versions of everything

Whatever index pip is configured for, by environment or pip.conf, is the one that is asked.
"""

import configparser
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".memoranda.json"
CACHE = ROOT / ".cache"
PACKAGES = ROOT / "packages"
PINS = ROOT / "requirements"
OLDEST_UV = (0, 8)
OLDEST_PYTHON = (3, 11)
NO_UV = """Memoranda needs `uv` to install, and could not get it. Do one of these, then try again:
  - install uv, so that `uv --version` works;
  - install venv and pip for python3 (Debian, Ubuntu: apt-get install python3-venv);
  - let pip reach a package index (PIP_INDEX_URL or pip.conf names one)."""


def main(arguments: "list[str]") -> None:
    """Set up `.venv`, or say in one sentence why it cannot be."""
    try:
        CACHE.mkdir(exist_ok=True)
        with open(CACHE / "bootstrap.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if "--lock" in arguments:
                pin("--upgrade" in arguments)
            elif not is_current("--dev" in arguments):
                install("--dev" in arguments)
    except subprocess.CalledProcessError as failed:
        command = " ".join(Path(part).name for part in failed.cmd[:3])
        sys.exit(f"setup: `{command}` failed ({failed.returncode}); its lines above say why")


def is_current(dev: bool) -> bool:
    """Whether `.venv` was made from these files, in this place, with at least what is asked for."""
    try:
        made = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    return made in (stamp(dev), stamp(True))


def stamp(dev: bool) -> "dict[str, object]":
    """What `.venv` depends on."""
    files = [ROOT / "pyproject.toml", *sorted(PINS.glob("*.txt")), *sorted(PACKAGES.glob("*/pyproject.toml"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return {"root": str(ROOT), "files": digest, "dev": dev}


def install(dev: bool) -> None:
    """Make `.venv` anew or bring it up to date; the stamp comes last, so that a broken attempt is repeated."""
    say("setting up .venv (the first time fetches about 200 MB and takes a minute)")
    env = {**os.environ, **index_settings(os.environ)}
    uv = find_uv()
    if not usable_venv():
        here = sys.version_info >= OLDEST_PYTHON
        python = sys.executable if here else ">={}.{}".format(*OLDEST_PYTHON)
        call(uv, "venv", "--clear", "--python", python, VENV, env=env)
    STAMP.unlink(missing_ok=True)
    into = ["--python", VENV / "bin" / "python"]
    if pip_settings(os.environ).get("no-index", "").lower() in ("1", "true", "yes", "on"):
        into.append("--no-index")
    lists = ["runtime.txt", "dev.txt"] if dev else ["runtime.txt"]
    wanted = [part for name in lists for part in ("-r", PINS / name)]
    call(uv, "pip", "install", *into, "--require-hashes", *wanted, env=env)
    folders = [ROOT, *(path.parent for path in sorted(PACKAGES.glob("*/pyproject.toml")))]
    editable = [part for folder in folders for part in ("-e", folder)]
    project = ["--no-deps", "--build-constraints", PINS / "build.txt", *editable]
    call(uv, "pip", "install", *into, *project, env=env)
    STAMP.write_text(json.dumps(stamp(dev)))


def usable_venv() -> bool:
    """Whether `.venv` is there, runs, and was not moved here from another folder."""
    try:
        moved = json.loads(STAMP.read_text())["root"] != str(ROOT)
    except (OSError, ValueError, KeyError):
        moved = False
    python = VENV / "bin" / "python"
    check = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return not moved and python.exists() and subprocess.run([str(python), "-c", check]).returncode == 0


def pin(upgrade: bool) -> None:
    """Write requirements/*.txt: versions that fit pyproject.toml, each with its hashes.

    A version that is pinned and still fits stays, unless `upgrade` asks for the newest.
    """
    uv = find_uv()
    project = (ROOT / "pyproject.toml").read_text()
    build = "\n".join(re.findall(r'requires = \["(uv_build[^"]*)"\]', project))
    dev = ["--group", "pyproject.toml:dev", "--constraints", PINS / "runtime.txt"]
    own = [
        part
        for path in sorted(PACKAGES.glob("*/pyproject.toml"))
        for part in ("--no-emit-package", path.parent.name)
    ]
    runtime = ["pyproject.toml", "-", "--extra", "all", "--no-emit-package", "memoranda", *own]
    for name, source, text in (
        ("runtime.txt", runtime, "pip\n"),  # for whoever installs into the environment
        ("dev.txt", dev, None),
        ("build.txt", ["-"], f"{build}\nuv\n"),
    ):
        flags = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
        plain = ["--no-annotate", "--no-header", *(["--upgrade"] if upgrade else []), "-o", PINS / name]
        # Without extra indexes: they may hold only some files of a version, and pins must fit everyone.
        env = {**os.environ, **index_settings(os.environ)}
        env.pop("UV_INDEX", None)
        call(uv, "pip", "compile", "-q", *source, *flags, *plain, env=env, given=text)


def find_uv() -> Path:
    """A uv that is new enough: the one on PATH, or a private one in .cache, fetched now if need be."""
    private = CACHE / "uv" / "bin" / "uv"
    for uv in (Path(shutil.which("uv") or private), private):
        if new_enough(uv):
            return uv
    for way in (uv_by_venv, uv_by_pip, uv_by_apt):
        shutil.rmtree(CACHE / "uv", ignore_errors=True)
        if way() and new_enough(private):
            return private
    sys.exit(NO_UV)


def new_enough(uv: Path) -> bool:
    """Whether this file is a uv that runs, of a version this script knows how to call."""
    try:
        told = subprocess.run([str(uv), "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return False
    return tuple(int(part) for part in told.split()[1].split(".")[:2]) >= OLDEST_UV


def uv_by_venv() -> bool:
    """Fetch uv with pip in a virtual environment of its own."""
    importlib.invalidate_caches()
    if not importlib.util.find_spec("ensurepip"):
        return False
    python = CACHE / "uv" / "bin" / "python"
    return attempt(sys.executable, "-m", "venv", CACHE / "uv") and pip_install(python)


def uv_by_pip() -> bool:
    """Fetch uv with the system's pip, for a python3 that has pip but no venv."""
    return bool(importlib.util.find_spec("pip")) and pip_install(sys.executable, "--target", CACHE / "uv")


def uv_by_apt() -> bool:
    """Install Debian's python3-venv and begin again; only for root, as in a container."""
    if importlib.util.find_spec("ensurepip") or os.geteuid() or not shutil.which("apt-get"):
        return False
    say("python3 has no venv; installing python3-venv with apt-get")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    updated = attempt(*apt, "update", env=env)
    return updated and attempt(*apt, "install", "-y", "python3-venv", env=env) and uv_by_venv()


def pip_install(python: object, *where: object) -> bool:
    """Fetch uv with this python's pip."""
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    env = {"PIP_ROOT_USER_ACTION": "ignore", **os.environ}
    return attempt(*pip, *where, "--require-hashes", "-r", PINS / "build.txt", env=env)


def index_settings(env: "Mapping[str, str]") -> "dict[str, str]":
    """uv's variables for what pip is configured to use: uv reads neither pip.conf nor PIP_*.

    What is set for uv already stays as it is.
    """
    pip = pip_settings(env)
    listed = {
        "UV_DEFAULT_INDEX": pip.get("index-url"),
        "UV_INDEX": " ".join(pip.get("extra-index-url", "").split()),
        "UV_FIND_LINKS": ",".join(pip.get("find-links", "").split()),
        "UV_INSECURE_HOST": " ".join(pip.get("trusted-host", "").split()),
        "SSL_CERT_FILE": pip.get("cert"),
        "ALL_PROXY": pip.get("proxy"),
        # pip takes the best version of all its indexes, uv the first index that has the name. Every
        # package is pinned by hash, so a stranger's package of the same name cannot come in.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if pip.get("extra-index-url") else None,
    }
    if env.get("UV_INDEX_URL"):
        del listed["UV_DEFAULT_INDEX"]
    if env.get("UV_EXTRA_INDEX_URL"):
        del listed["UV_INDEX"]
    return {name: value for name, value in listed.items() if value and not env.get(name)}


def pip_settings(env: "Mapping[str, str]") -> "dict[str, str]":
    """What pip.conf files and PIP_* variables say, by option name; the later of pip's places wins."""
    home = Path(env.get("HOME") or Path.home())
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    shared = env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    folders = [*(Path(folder) / "pip" for folder in shared), Path("/etc"), home / ".pip", user / "pip"]
    places = [folder / "pip.conf" for folder in folders]
    if env.get("PIP_CONFIG_FILE"):
        places.append(Path(env["PIP_CONFIG_FILE"]))
    if env.get("PIP_CONFIG_FILE") == os.devnull:
        places = []
    files = configparser.RawConfigParser(strict=False)
    files.read(places, encoding="utf-8")
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if files.has_section(section):
            found.update((name.replace("_", "-"), value) for name, value in files.items(section))
    for name, value in env.items():
        if name.startswith("PIP_") and value:
            found[name[4:].lower().replace("_", "-")] = value
    return found


def attempt(*command: object, env: "Mapping[str, str] | None" = None) -> bool:
    """Run a command that may fail; whether it worked. Its output goes to stderr."""
    try:
        call(*command, env=env)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def call(*command: object, env: "Mapping[str, str] | None" = None, given: "str | None" = None) -> None:
    """Run a command; its output goes to stderr, so that a program's own output stays alone on stdout."""
    words = [str(part) for part in command]
    if Path(words[0]).name == "uv" and not sys.stderr.isatty():
        words.insert(1, "-q")
    subprocess.run(words, env=env, input=(given or "").encode(), stdout=2, check=True, cwd=str(ROOT))


def say(text: str) -> None:
    """Tell whoever waits what is going on."""
    print(f"memoranda: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.version_info < (3, 8):  # noqa: UP036 - whatever python3 a machine has runs this file
        sys.exit("setup: this python3 is older than 3.8; Memoranda needs Python 3.11 or newer")
    main(sys.argv[1:])
