"""Parses the lines of a JSONL file with orjson, so many times over, and prints
the seconds and the CPU seconds of each pass: python3 parse.py FILE PASSES"""
import sys
import time

import orjson

with open(sys.argv[1], "rb") as file:
    lines = file.read().splitlines()
for _ in range(int(sys.argv[2])):
    start, cpu = time.perf_counter(), time.process_time()
    for line in lines:
        orjson.loads(line)
    print(time.perf_counter() - start, time.process_time() - cpu)
