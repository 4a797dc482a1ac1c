"""wheel.py TREE VERSION FILE: what scripts/bundle has put together, as a wheel.

Everything goes below the environment's prefix, as in the bundle; pip makes of bin/ the environment's scripts.
"""
import base64
import hashlib
import os
import sys
import zipfile

tree, version, path = sys.argv[1:]
tag = "-".join(os.path.basename(path)[: -len(".whl")].split("-")[2:])
info = f"memefs-{version}.dist-info"
data = f"memefs-{version}.data"
record = []


def add(wheel, name, content, executable):
    entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record.append(f"{name},sha256={digest},{len(content)}\n")


with zipfile.ZipFile(path, "w") as wheel:
    for folder, _, files in sorted(os.walk(tree)):
        for file in sorted(files):
            source = os.path.join(folder, file)
            below = os.path.relpath(source, tree)
            place = f"{data}/scripts/{file}" if below.startswith("bin/") else f"{data}/data/{below}"
            with open(source, "rb") as f:
                add(wheel, place, f.read(), os.access(source, os.X_OK))
    about = f"Metadata-Version: 2.1\nName: memefs\nVersion: {version}\nSummary: Elastic, network-aware in-memory file system\n"
    add(wheel, f"{info}/METADATA", about.encode(), False)
    kind = f"Wheel-Version: 1.0\nGenerator: memefs\nRoot-Is-Purelib: false\nTag: {tag}\n"
    add(wheel, f"{info}/WHEEL", kind.encode(), False)
    record.append(f"{info}/RECORD,,\n")
    wheel.writestr(f"{info}/RECORD", "".join(record))
