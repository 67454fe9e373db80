"""Spells prompts by the rules of docs/prompts.md, from the page alone.

Prints the known answers that the tests compare with:
    python3 reference.py > known_answers.json
It needs words.txt one folder up, and nothing but the standard library.
"""
import hashlib
import json
import pathlib

M64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
BLOCK, TAIL, OUTPUT = 0, 1, 2
WORDS = (pathlib.Path(__file__).parent.parent / "words.txt").read_text().split("\n")[:2048]


def mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & M64
    return x ^ (x >> 31)


def keys(namespace, salt, block_size):
    msg = b"retrace prompt 1"
    for text in (namespace.encode(), salt.encode()):
        msg += len(text).to_bytes(8, "little") + text
    digest = hashlib.sha256(msg + block_size.to_bytes(8, "little")).digest()
    return [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(3)]


def head(kind_key, key, width):
    digits, rest = [], M64
    while rest:
        digits.append(key % width)
        key //= width
        rest //= width
    for i in range(len(digits)):
        h = (kind_key + (i + 1) * GOLDEN) & M64
        for j, digit in enumerate(digits):
            if j != i:
                h = mix(h ^ digit)
        digits[i] = (digits[i] + (h * width >> 64)) % width
    return digits


def spell(ks, width, kind, key, n):
    out = head(ks[kind], key, width)
    seed, i = mix(ks[kind] ^ key), 0
    while len(out) < n:
        i += 1
        x = mix((seed + i * GOLDEN) & M64)
        out += [(x & 0xFFFFFFFF) * width >> 32, (x >> 32) * width >> 32]
    return out[:n]


def main():
    cases = []
    configs = [("", "", 16, 1000, 31999), ("5d41402abc4b2a76", "", 512, 1000, 31999),
               ("5d41402abc4b2a76", "run 2", 512, 1000, 31999), ("ns", "", 16, 5, 260), ("ns", "", 4, 0, 999999)]
    prompts = [
        [(BLOCK, 0, 16)],
        [(BLOCK, 0, 16), (BLOCK, 1, 16), (BLOCK, 2, 5)],
        [(BLOCK, M64, 3), (TAIL, 7, 4), (OUTPUT, 7, 4)],
        [(BLOCK, 30999, 8), (BLOCK, 31000, 8), (TAIL, 1 << 63, 19)],
        [(TAIL, 123456789, 600)],
    ]
    for namespace, salt, size, lo, hi in configs:
        ks = keys(namespace, salt, size)
        for segs in prompts:
            tokens = [lo + i for k, key, n in segs for i in spell(ks, hi - lo + 1, k, key, n)]
            words = [WORDS[i] for k, key, n in segs for i in spell(ks, 2048, k, key, n)]
            cases.append({
                "namespace": namespace, "salt": salt, "block_size": size, "lo": lo, "hi": hi,
                "segments": [{"Kind": k, "Key": key, "N": n} for k, key, n in segs],
                "tokens": tokens, "text": " ".join(words),
            })
    print("[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "]")


if __name__ == "__main__":
    main()
