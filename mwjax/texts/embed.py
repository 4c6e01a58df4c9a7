"""Vectors of texts by a sentence-transformers model in a local folder.

`python -m mwjax.texts.embed mine.toml --model FOLDER` writes mine.npz beside mine.toml. It needs the extra
`text`; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mwjax.types import InputError

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""Files that hold the weights of a model, the first one that is there; its sha256 says which model it is."""


def embed(texts: Sequence[str], model: str | Path) -> np.ndarray:
    """Unit vectors of texts by the model in a local folder, float16 [text, dimension]; InputError says what lacks."""
    weights_of(model)
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError("texts: new vectors need sentence-transformers; pip install 'mwjax[text]'") from error
    encoder: Any = SentenceTransformer(str(model), device="cpu", local_files_only=True)
    return np.asarray(encoder.encode(list(texts), normalize_embeddings=True), np.float32).astype(np.float16)


def weights_of(model: str | Path) -> Path:
    """The file of a model's weights; InputError where the folder holds none."""
    found = [Path(model) / name for name in WEIGHTS if (Path(model) / name).is_file()]
    if not found:
        raise InputError(f"model = {str(model)!r}: must be a local folder with {' or '.join(WEIGHTS)}")
    return found[0]


def write(path: Path, texts: Sequence[str], model: str | Path) -> None:
    """Embed texts and store text, vector (float16), the model's name and the sha256 of its weights in an .npz."""
    vectors, weights = embed(texts, model), weights_of(model)
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    np.savez_compressed(path, text=np.array(texts), vector=vectors, model=Path(model).name, sha256=digest)


def main() -> None:
    """The vectors of every memory and query in a TOML of texts."""
    from mwjax.texts.corpus import read

    parser = argparse.ArgumentParser(prog="python -m mwjax.texts.embed", description=main.__doc__)
    parser.add_argument("texts", type=Path, help="a TOML of memories and topics")
    parser.add_argument("--model", required=True, help="folder of a sentence-transformers model")
    args = parser.parse_args()
    corpus = read(args.texts)
    write(args.texts.with_suffix(".npz"), corpus.texts(), args.model)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from error
