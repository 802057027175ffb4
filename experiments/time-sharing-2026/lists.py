"""Cuts a log into lists of the same length, each a trace of its own."""

import gzip
import hashlib


def cut(source, folder, name, size):
    """Writes the lists and returns [(path, first second measured, first second after that)]."""
    header, jobs = [], []
    with (gzip.open if source.suffix == ".gz" else open)(source, "rt", errors="replace") as log:
        for line in log:
            fields = line.split()
            if line.startswith(";"):
                header.append(line)
            elif len(fields) >= 18:
                jobs.append(with_estimate(fields))
    jobs.sort(key=lambda fields: float(fields[1]))
    first, last = float(jobs[0][1]), float(jobs[-1][1])
    length = (last - first) * size["part"] / size["lists"]
    made, contents = [], hashlib.sha256(source.read_bytes()).hexdigest()[:8]
    for place in range(size["lists"]):
        begin = first + place * (last - first) / size["lists"]
        path = folder / f"{name}-{contents}-{size['part']:g}-{size['lists']}-{place}.swf"
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_text("".join(header) + "".join(" ".join(fields) + "\n" for fields in jobs if begin <= float(fields[1]) < begin + length))
            part.rename(path)
        made.append((path, begin, length))
    return made


def with_estimate(fields):
    """A job without an estimate gets its run time as one: that favours the policies that plan by estimates."""
    if float(fields[8]) <= 0 and float(fields[3]) > 0:
        fields[8] = fields[3]
    return fields
