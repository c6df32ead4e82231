"""Modules as bundles: run by Node, they do what the modules do."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from memoranda.server.console_assets import assets, bundles
from support.console import SOURCE

SOURCES = {
    "app.js": """// The main module.
import { log, note } from "./ui/log.js";
import { twice } from "./ui/core.js";
import { PAGES } from "./views/index.js";

note(`app ${twice(2)}`);
Promise.all(PAGES.map((page) => page.load())).then((pages) => {
  for (const { View } of pages) note(View());
  console.log(JSON.stringify(log));
});
""",
    "ui/core.js": """export { two as times, one } from "../vendor/lib.js";
import { two } from "../vendor/lib.js";
/** @typedef {import("./log.js").Note} Note */
export const twice = (n) => n * two;
export async function* lines() {}
export class Box {}
""",
    "ui/log.js": """export const log = [];
export function note(text) {
  log.push(text);
}
""",
    "ui/format.js": """import { note } from "./log.js";
note("format");
export const shown = (n) => `<${n}>`;
""",
    "vendor/lib.js": "const a=1,b=2;export{a as one,b as two};//# sourceMappingURL=lib.js.map",
    "views/index.js": """export const PAGES = [{ load: () => import("./one.js") }, { load: () => import("./two.js") }];
""",
    "views/one.js": """import { shown as format } from "../ui/format.js";
import { times, one } from "../ui/core.js";
export const View = () => format(one + times);
""",
    "views/two.js": """import { part } from "./two/part.js";
import { shown } from "../ui/format.js";
export function View() {
  return shown(part);
}
""",
    "views/two/part.js": """import { twice } from "../../ui/core.js";
export const part = twice(21);
""",
}
PAGES = ["views/one.js", "views/two.js"]


def run(folder: Path, files: dict[str, str]) -> list[str]:
    """What the main module prints."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on the PATH")
    (folder / "package.json").write_text('{"type": "module"}')
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    done = subprocess.run([node, "app.js"], cwd=folder, capture_output=True, text=True, check=True)
    said: list[str] = json.loads(done.stdout)
    return said


def test_bundles_do_what_their_modules_do(tmp_path: Path) -> None:
    for folder in ("modules", "bundles"):
        (tmp_path / folder).mkdir()
    assert run(tmp_path / "modules", SOURCES) == ["app 4", "format", "<3>", "<42>"]
    made = bundles(SOURCES, "app.js", PAGES)
    assert made.keys() == {"app.js", *PAGES}
    assert run(tmp_path / "bundles", made) == ["format", "app 4", "<3>", "<42>"]


def test_a_module_is_in_one_bundle(tmp_path: Path) -> None:
    made = bundles(SOURCES, "app.js", PAGES)
    for path in SOURCES:
        holding = [name for name, text in made.items() if f'modules$["{path}"] = ' in text]
        assert len(holding) == 1, path
    assert 'modules$["ui/format.js"] = ' in made["app.js"], "two pages need it"
    assert 'modules$["views/two/part.js"] = ' in made["views/two.js"]


def test_the_bundles_of_the_console_have_every_module() -> None:
    made = "".join(asset.body.decode() for path, asset in assets().files.items() if path.endswith(".js"))
    for path in SOURCE.rglob("*.js"):
        assert made.count(f'modules$["{path.relative_to(SOURCE).as_posix()}"] = ') == 1, path


def test_words_in_comments_and_texts_stay(tmp_path: Path) -> None:
    text = SOURCES["ui/log.js"] + "// `export { log }`\nexport const a$ = 'export { note }';\n"
    made = bundles({**SOURCES, "ui/log.js": text}, "app.js", PAGES)
    assert "return { log, note, a$ };" in made["app.js"]
    assert "// `export { log }`" in made["app.js"]
    assert "'export { note }'" in made["app.js"]


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        (
            "ui/log.js",
            'import { twice } from "./core.js";\nexport const log = [], note = 1;',
            "imports note of ui/log.js",
        ),
        ("views/one.js", 'export const View = () => import("./two.js");', "only what pages share"),
        ("ui/log.js", '  import { twice } from "./core.js";', "ui/log.js: `import "),
        ("ui/log.js", "export default 1;", "ui/log.js: `export default 1;`"),
        ("ui/log.js", 'import * as all from "./core.js";', "ui/log.js: `import "),
        ("ui/log.js", 'import { part } from "./none.js";', "ui/none.js is imported, and is not there"),
        (
            "vendor/lib.js",
            'import { one } from "../ui/core.js";\nexport const two = 2;',
            "take out what both need",
        ),
    ],
)
def test_what_cannot_be_bundled_is_an_error_that_names_it(path: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        bundles({**SOURCES, path: text}, "app.js", PAGES)
