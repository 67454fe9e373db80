"""Encode texts with Hugging Face's tokenizers.

usage: reference.py TOKENIZER.json < TEXTS > ANSWERS

TEXTS is a JSON array of strings. ANSWERS is an array of objects: the ids of
each text without ("ids") and with ("prompt") the tokens that the
post-processor adds, and the text that the ids decode to ("text").
"""

import json
import sys

from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file(sys.argv[1])
texts = json.load(sys.stdin)
plain = tokenizer.encode_batch(texts, add_special_tokens=False)
prompts = tokenizer.encode_batch(texts)
answers = [
    {"ids": p.ids, "prompt": q.ids, "text": tokenizer.decode(p.ids, skip_special_tokens=False)}
    for p, q in zip(plain, prompts)
]
json.dump(answers, sys.stdout, ensure_ascii=True)
