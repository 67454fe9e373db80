"""Hashes a chain of blocks as vLLM does: for each block a tuple of its ids, and
one call of the hash function on (parent, ids, None), with the serialisers and
digests that vLLM's functions call. Prints for each pass the algorithm, its
seconds and the last digest: python3 hash.py BLOCKS BLOCK_SIZE PASSES"""
import hashlib
import pickle
import sys
import time

import cbor2
import xxhash


def sha256(value):
    return hashlib.sha256(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)).digest()


def sha256_cbor(value):
    return hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()


def xxhash_pickle(value):
    return xxhash.xxh3_128_digest(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def xxhash_cbor(value):
    return xxhash.xxh3_128_digest(cbor2.dumps(value, canonical=True))


def hash_block_tokens(function, parent, ids, extra=None):
    return function((parent, tuple(ids), extra))


blocks, size, passes = map(int, sys.argv[1:])
tokens = [(j * 7919 + 13) % 151643 for j in range(blocks * size)]
lists = [tokens[i : i + size] for i in range(0, len(tokens), size)]
functions = {"sha256": sha256, "sha256_cbor": sha256_cbor, "xxhash": xxhash_pickle, "xxhash_cbor": xxhash_cbor}
for name, function in functions.items():
    for _ in range(passes):
        parent = function("0")
        start = time.perf_counter()
        for ids in lists:
            parent = hash_block_tokens(function, parent, ids)
        print(name, time.perf_counter() - start, parent.hex())
