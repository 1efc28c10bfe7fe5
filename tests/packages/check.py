"""Checks the packages with what no tool of others knows. scripts/check-packages calls it:

check.py manifests FILE…            the rendered manifests, one file for each file of values
check.py values HELM                values that the chart must refuse
check.py plain HELM [--write]       deploy/kubernetes against the chart
check.py files                      files that must agree
check.py running BINARY FILE…       a binary with what the manifests give it
"""

import json
import pathlib
import subprocess
import sys

import yaml

import files
import manifests
import running
import seccomp
import values

CHART = files.ROOT / "deploy/helm/agent-runtime"
PLAIN = files.ROOT / "deploy/kubernetes"
HEADING = """\
# Rendered from deploy/helm/agent-runtime by scripts/check-packages --write. Change the chart.
"""
# The values of each file, and the kinds that are in it.
PLAIN_FILES = {
    "migrate.yaml": ([], lambda kind: kind == "Job"),
    "agent-runtime.yaml": ([], lambda kind: kind != "Job"),
    "agent-runtime-with-commands.yaml": (["--set", "commands.enabled=true"], lambda kind: kind != "Job"),
}


def documents(path):
    return [document for document in yaml.safe_load_all(pathlib.Path(path).read_text()) if document]


def check_manifests(paths):
    for path in paths:
        name, found = pathlib.Path(path).stem, documents(path)
        yield from (f"{name}: {fault}" for fault in manifests.faults(found))
        missed = manifests.unnoticed(found, manifests.BROKEN.get(name, []))
        yield from (f"{name}: a fault is not noticed: {fault}" for fault in missed)


def check_plain(helm, write=False):
    for name, (options, is_in) in PLAIN_FILES.items():
        command = [helm, "template", "agent-runtime", CHART, *options]
        rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        parts = [plain(part) for part in rendered.split("\n---\n")]
        parts = [part for part in parts if yaml.safe_load(part) and is_in(yaml.safe_load(part)["kind"])]
        text = HEADING + "".join(f"---\n{part}" for part in parts)
        if write:
            (PLAIN / name).write_text(text)
        elif not (PLAIN / name).exists() or (PLAIN / name).read_text() != text:
            yield f"deploy/kubernetes/{name} differs from the chart: scripts/check-packages --write"
    for path in PLAIN.iterdir():
        if path.name not in PLAIN_FILES:
            yield f"deploy/kubernetes/{path.name} is not from the chart"


def plain(document):
    """Leaves out what only Helm understands, and keys of which nothing is left."""
    kept = []
    for line in document.splitlines():
        is_helms = "helm.sh/" in line or line.endswith("managed-by: Helm") or line.startswith("# Source: ")
        if line.strip() and line != "---" and not is_helms:
            kept.append(line)
    pairs = zip(kept, [*kept[1:], ""])
    kept = [line for line, after in pairs if line.strip() != "annotations:" or depth(after) > depth(line)]
    return "\n".join(kept) + "\n"


def depth(line):
    return len(line) - len(line.lstrip())


def check_running(binary, paths):
    for path in paths:
        yield from running.faults(binary, pathlib.Path(path).stem, documents(path))
    by_name = {pathlib.Path(path).stem: documents(path) for path in paths}
    yield from running.serving_faults(binary, by_name["all"])
    if seccomp.library() is None:
        print("!!! LEFT OUT: commands under the seccomp profiles (there is no libseccomp)")
        return
    profiles = {"deploy/seccomp/commands.json": json.loads(files.read("deploy/seccomp/commands.json"))}
    try:
        profiles["agent-runtime.service"] = seccomp.of_unit(files.read("deploy/systemd/agent-runtime.service"))
    except FileNotFoundError:
        print("!!! LEFT OUT: commands under the filter of the unit (there is no systemd-analyze)")
    found = running.command_faults(binary, by_name["commands"], profiles)
    if found is None:
        print("!!! LEFT OUT: commands under the seccomp profiles (this host offers no namespaces)")
    yield from found or []


def main(what, *arguments):
    checks = {
        "manifests": lambda *paths: check_manifests(paths),
        "values": lambda helm: values.accepted(helm, CHART),
        "plain": lambda helm, *options: check_plain(helm, "--write" in options),
        "files": files.faults,
        "running": lambda binary, *paths: check_running(binary, paths),
    }
    faults = list(checks[what](*arguments))
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
