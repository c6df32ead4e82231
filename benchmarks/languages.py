"""How often keyword search finds the right paragraph, by language: the first of 240 paragraphs of XQuAD for each of its
questions.

    python benchmarks/languages.py FOLDER [--backend tantivy:]

FOLDER has `xquad.LANGUAGE.json` (Artetxe et al. 2020).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from memoranda.indexes.keyword import WordDoc, open_words


def found_first(path: Path, url: str) -> float:
    """Return the share of the questions whose paragraph is the first that keyword search finds."""
    paragraphs = [each for article in json.loads(path.read_text())["data"] for each in article["paragraphs"]]
    questions = [(each["question"], seq) for seq, one in enumerate(paragraphs) for each in one["qas"]]
    with tempfile.TemporaryDirectory() as folder:
        words = open_words(url, Path(folder))
        words.put("t", [WordDoc(seq, one["context"], {"seq": seq}) for seq, one in enumerate(paragraphs)])
        right = sum(words.search("t", question, 1).seqs.tolist() == [seq] for question, seq in questions)
        words.close()
    return right / len(questions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend", default="tantivy:")
    asked = parser.parse_args()
    shares = {
        path.suffixes[0][1:]: found_first(path, asked.backend)
        for path in sorted(asked.folder.glob("xquad.*.json"))
    }
    for language, share in shares.items():
        print(f"{language}  {share:.3f}  {share / shares['en']:.3f} of English")


if __name__ == "__main__":
    main()
