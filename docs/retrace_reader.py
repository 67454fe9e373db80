#!/usr/bin/env python3
"""Read Retrace containers (.trace, .rec): docs/format.md in executable form.

    import retrace_reader
    for request in retrace_reader.requests("a.trace"): ...

or `python3 retrace_reader.py FILE` prints one JSON line an item. Needs cbor2
and zstandard. Unknown values are None; times are nanoseconds.
"""
import base64, hashlib, io, json, os, struct, sys

import cbor2
import zstandard

M64 = (1 << 64) - 1


def items(path):
    """Yield the CBOR items of a file: header, chunks, footer."""
    with open(path, "rb") as f:
        stream = zstandard.ZstdDecompressor().stream_reader(f, read_across_frames=True)
        data = io.BytesIO(stream.read())
    while data.tell() < len(data.getbuffer()):
        yield cbor2.load(data)


def signed(v):
    v &= M64
    return v - (1 << 64) if v >> 63 else v


class Cursor:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, n):
        self.pos += n
        assert self.pos <= len(self.data), "column ends too early"
        return self.data[self.pos - n:self.pos]

    def byte(self):
        return self.take(1)[0]

    def uvarint(self):
        v = shift = 0
        while True:
            b = self.byte()
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return v

    def zigzag(self):
        u = self.uvarint()
        return (u >> 1) ^ -(u & 1)

    def left(self):
        return len(self.data) - self.pos


def ints(c, n, none=None):
    """An integer column of n rows; rows without a value are none."""
    flags = c.byte()
    present = list(range(n))
    if flags & 2:
        mask = c.take((n + 7) // 8)
        present = [i for i in range(n) if mask[i // 8] >> (i % 8) & 1]
    out = [none] * n
    if not present:
        return out
    if flags & 4:
        v = c.zigzag()
        for i in present:
            out[i] = v
        return out
    v = c.zigzag() if flags & 1 else 0
    q = c.uvarint()
    for k, i in enumerate(present):
        if flags & 1:
            if k and q:
                v = signed(v + c.zigzag() * q)
        else:
            v = signed(c.zigzag() * q) if q else 0
        out[i] = v
    return out


def texts(c, n):
    """A string column of n rows."""
    kind = c.byte()
    if kind == 2:
        return ["" if v is None else str(v) for v in ints(c, n)]
    if kind == 1:
        words = raw_texts(c, c.uvarint())
        return [words[c.uvarint()] for _ in range(n)]
    return raw_texts(c, n)


def raw_texts(c, n):
    lengths = [c.uvarint() for _ in range(n)]
    return [c.take(k).decode("utf-8", "surrogateescape") for k in lengths]


def blobs(c, n):
    """A byte-string column of n rows; None is nil."""
    lengths = [c.uvarint() for _ in range(n)]
    return [None if k == 0 else c.take(k - 1) for k in lengths]


class Columns:
    """The columns of one chunk; those that are left out have a default."""

    def __init__(self, columns, n):
        self.columns, self.n = columns, n

    def cursor(self, name):
        return Cursor(self.columns.get(name, b""))

    def ints(self, name, default=None, n=None):
        """An integer column; rows without a value have the default."""
        n = self.n if n is None else n
        return ints(self.cursor(name), n, default) if name in self.columns else [default] * n

    def texts(self, name, n=None):
        n = self.n if n is None else n
        return texts(self.cursor(name), n) if name in self.columns else [""] * n

    def blobs(self, name, n=None):
        n = self.n if n is None else n
        return blobs(self.cursor(name), n) if name in self.columns else [None] * n


def block_ids(c):
    """The block ids behind the chunk's local numbers."""
    if not c.left():
        return []
    if c.byte() == 1:
        return list(struct.unpack(f"<{c.left() // 8}Q", c.take(c.left())))
    ids, nxt = [], c.uvarint()
    while c.left():
        start = (nxt + c.zigzag()) & M64
        n = c.uvarint()
        ids += [(start + i) & M64 for i in range(n)]
        nxt = max(nxt, (start + n) & M64)
    return ids


def lengths_and_blocks(col, n, block_size):
    """Yield (input, output, blocks) of each request of a chunk."""
    mode, il, bl, bh, ol = (col.cursor(k).data for k in ("mo", "il", "bl", "bh", "ol"))
    ih, oh, sh, tu, bx, ru = (col.cursor(k) for k in ("ih", "oh", "sh", "tu", "bx", "ru"))
    ids, fresh, at_il, at_bl, done = block_ids(col.cursor("bn")), 0, 0, 0, []
    for i in range(n):
        m, parent, shared = mode[i], i - 1, 0
        if m & 3 >= 2:
            parent -= bl[at_bl] | bh[at_bl] << 8
            at_bl += 1
        p = done[parent] if m & 3 else None
        shared = (0, 1, len(p[2]) - 1 if p else 0, 0)[m & 3]
        if m & 3 == 3:
            shared = sh.uvarint()
        if m & 8:
            inp = signed(p[0] + p[1] + tu.uvarint())
        else:
            inp = signed((ih.uvarint() << 8 | il[at_il]) - 1)
            at_il += 1
        out = signed((oh.uvarint() << 8 | ol[i]) - 1)
        count = (inp - 1) // block_size + 1 if inp > 0 and block_size > 0 else 0
        if bx.data:
            count = signed(count + bx.zigzag())
        blocks = p[2][:shared] if shared else []
        if m & 4:
            while len(blocks) < count:
                start = fresh + ru.zigzag()
                k = ru.uvarint()
                blocks = blocks + ids[start:start + k]
                fresh = max(fresh, start + k)
        else:
            k = count - shared
            blocks = blocks + ids[fresh:fresh + k]
            fresh += k
        done.append((inp, out, blocks))
        yield done[-1]


def bodies(col, store):
    """Yield the bodies of a chunk, with the strings that were cut out put back."""
    c, row, at = col.cursor("bs"), 0, 0
    parts = {}
    while c.left():
        step = c.uvarint()
        if step:
            row, at = row + step, 0
        start, at = at, at + c.uvarint()
        data = store[c.uvarint()]
        assert len(data) == c.uvarint(), "blob of another length"
        parts.setdefault(row, []).append((start, at, data))
    for row, left in enumerate(col.blobs("bo")):
        spans = parts.get(row)
        yield left if not spans else b"".join(left[start:end] + data for start, end, data in spans) + left[spans[-1][1]:]


def request_chunk(first, n, columns, block_size, store):
    col = Columns(columns, n)
    rows, nxt = [], first
    for v in col.ints("ro", 0):
        rows.append(signed(nxt + v))
        nxt = rows[-1] + 1
    priority = [None] * n
    if "pr" in columns:
        c = col.cursor("pr")
        c.zigzag()
        priority = ints(c, n)
    fields = {
        "row": rows, "priority": priority, "arrival": col.ints("ar"), "delay": col.ints("de"),
        "turn": col.ints("tn", 0), "increment": [bool(v) for v in col.ints("in", 0)],
        "id": col.texts("id"), "session": col.texts("se"), "parent": col.texts("pa"), "api": col.texts("ap"),
        "model": col.texts("mt"), "kind": col.texts("ki"), "extra": col.blobs("ex"),
        "observed": [dict(zip(("status", "latency", "input_tokens", "output_tokens", "failed"), v)) for v in zip(
            col.ints("os", 0), col.ints("ot"), col.ints("oi"), col.ints("oo"),
            [bool(v) for v in col.ints("of", 0)])],
        "media": nested(col, "mc", lambda k: zip(col.texts("mk", k), col.texts("mr", k), col.ints("mb", n=k)),
                        ("kind", "ref", "bytes")),
        "exceptions": nested(col, "en", lambda k: zip(col.texts("eo", k), col.blobs("er", k)), ("field", "raw")),
    }
    joined = bodies(col, store)
    for i, (inp, out, blocks) in enumerate(lengths_and_blocks(col, n, block_size)):
        r = {name: values[i] for name, values in fields.items()}
        r["body"] = next(joined)
        r["input_tokens"], r["output_tokens"] = unknown([inp, out])
        r["blocks"] = blocks
        yield r


def unknown(values):
    return [None if v == -1 else v for v in values]


def nested(col, count, read, names):
    """Lists of things: a count a record, then the fields of all of them."""
    counts = col.ints(count, 0)
    flat = [dict(zip(names, v)) for v in read(sum(counts))]
    out = []
    for k in counts:
        out.append(flat[:k])
        flat = flat[k:]
    return out


MOMENTS = (("sc", "scheduled"), ("gr", "granted"), ("st", "sent"), ("fb", "first_byte"), ("fo", "first_output"),
           ("fc", "first_content"), ("lo", "last_output"), ("en", "end"))
COUNTS = (("wi", "wanted_input"), ("wo", "wanted_output"), ("ph", "predicted_hit"), ("pt", "prompt_tokens"),
          ("ct", "completion_tokens"), ("ca", "cached_tokens"), ("rt", "reasoning_tokens"), ("mm", "media_tokens"),
          ("cc", "counted_output"))
NUMBERS = (("tn", "turn"), ("ma", "mark"), ("rp", "replica"), ("sd", "shard"), ("hs", "status"), ("sa", "state"),
           ("ru", "reused"), ("at", "attempts"), ("bs", "bytes_sent"), ("br", "bytes_received"))
TIMES = (("co", "connect"), ("vq", "server_queue"), ("vp", "server_prefill"), ("vd", "server_decode"))
TEXTS = (("id", "id"), ("se", "session"), ("mt", "model"), ("ki", "kind"), ("cl", "class"), ("re", "reason"),
         ("er", "error"), ("fr", "finish_reason"))


def result_chunk(n, columns):
    col = Columns(columns, n)
    fields = {name: col.texts(c) for c, name in TEXTS}
    fields.update({name: col.ints(c, 0) for c, name in NUMBERS})
    fields.update({name: col.ints(c) for c, name in COUNTS})
    fields["output"] = col.blobs("ou")
    for c, name in TIMES:
        fields[name] = [None if v is None else v * 1000 for v in col.ints(c)]
    gaps = nested(col, "gn", lambda k: zip(col.ints("gw", n=k), col.ints("gt", n=k)), ("wait", "tokens"))
    tries = nested(col, "yn", lambda k: zip(col.ints("ys", n=k), col.ints("yw", n=k), col.ints("yh", 0, k),
                                            col.texts("yc", k)), ("sent", "wait", "status", "class"))
    choices = nested(col, "on", lambda k: ((v,) for v in col.ints("of", n=k)), ("first_output",))
    moments = {name: col.ints(c) for c, name in MOMENTS}
    for i in range(n):
        r = {name: values[i] for name, values in fields.items()}
        r["reused"] = bool(r["reused"])
        base, first_output = 0, None
        for _, name in MOMENTS:
            v = moments[name][i]
            if name == "last_output" and first_output is not None:
                base = first_output + sum(g["wait"] or 0 for g in gaps[i])
            if v is not None:
                v += base
                if name != "first_content":
                    base = v
            elif name == "last_output" and first_output is not None:
                base = first_output
            if name == "first_output":
                first_output = v
            r[name] = None if v is None else v * 1000
        r["gaps"] = [{"wait": None if g["wait"] is None else g["wait"] * 1000, "tokens": g["tokens"]} for g in gaps[i]]
        r["choices"] = [{k: None if v is None else v * 1000 for k, v in c.items()} for c in choices[i]]
        r["tries"] = [{**t, **{k: None if t[k] is None else t[k] * 1000 for k in ("sent", "wait")}} for t in tries[i]]
        yield r


def series_chunk(n, columns):
    col = Columns(columns, n)
    labels = nested(col, "lc", lambda k: zip(col.texts("lk", k), col.texts("lv", k)), ("k", "v"))
    values = struct.unpack(f"<{len(columns.get('va', b'')) // 8}d", columns.get("va", b""))
    points = nested(col, "pc", lambda k: zip(col.ints("ti", n=k), values), ("t", "v"))
    for i, name in enumerate(col.texts("na")):
        yield {"name": name, "labels": {x["k"]: x["v"] for x in labels[i]},
               "times": [x["t"] for x in points[i]], "values": [x["v"] for x in points[i]]}


def read(path):
    """Yield (kind, value): header, requests, results, series one by one, footer."""
    block_size, store = 0, {}
    for item in items(path):
        kind = item[0]
        if kind == "retrace":
            assert item[1] == 1, f"format version {item[1]} is not 1"
            block_size = item[2].get("block_size", 0)
            yield "header", item[2]
        elif kind == "blob":
            assert hashlib.sha256(item[3]).digest() == item[2], "blob is not what its digest says"
            store[item[1]] = item[3]
        elif kind == "footer":
            yield kind, item[1]
        else:
            _, _, first, n, columns = item
            chunk = {"requests": lambda: request_chunk(first, n, columns, block_size, store),
                     "results": lambda: result_chunk(n, columns), "series": lambda: series_chunk(n, columns)}[kind]()
            for value in chunk:
                yield kind, value


def requests(path):
    return (v for kind, v in read(path) if kind == "requests")


def results(path):
    return (v for kind, v in read(path) if kind == "results")


def main():
    def plain(v):
        return v.decode() if isinstance(v, bytes) and v.isascii() else base64.b64encode(v).decode()
    try:
        for kind, value in read(sys.argv[1]):
            print(json.dumps({kind: value}, default=plain))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads us, as head does, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
