"""Compares files that must agree: versions, variables, and what pages say of the packages."""

import pathlib
import re
import tomllib

import yaml

import manifests

ROOT = pathlib.Path(__file__).parents[2]


def read(name):
    return (ROOT / name).read_text()


def faults():
    yield from version_faults()
    yield from compose_faults(yaml.safe_load(read("compose.yaml")))
    yield from setting_faults()
    yield from image_faults(read("Dockerfile"))
    yield from page_faults()


def version_faults():
    version = tomllib.loads(read("Cargo.toml"))["workspace"]["package"]["version"]
    chart = yaml.safe_load(read("deploy/helm/agent-runtime/Chart.yaml"))
    for key in ("version", "appVersion"):
        if chart[key] != version:
            yield f"Chart.yaml: {key} is {chart[key]}, that of Cargo.toml {version}"


def compose_faults(compose):
    service = compose["services"]["agent-runtime"]
    variables = service["environment"]
    defaults = tomllib.loads(read("config/default.toml"))
    for name, provider in defaults["providers"].items():
        is_here = "127.0.0.1" in provider.get("base_url", "")
        names = [value for key, value in (provider | provider.get("aws", {})).items() if key.endswith("_env")]
        for variable in names:
            if not is_here and (variable not in variables or variables[variable] is not None):
                yield f"compose.yaml: does not pass {variable} on to the provider {name}"
    for variable in (defaults["http"]["mcp"]["state_key_env"], defaults["openai"]["seal_key_env"]):
        if variable not in variables:
            yield f"compose.yaml: does not pass {variable} on"
    build = service["build"]
    if not isinstance(build, dict) or build.get("target") != "tools" or "/tmp:exec" not in service["tmpfs"]:
        yield "compose.yaml: commands of agents can't run"
    if not any(port.startswith("127.0.0.1:") for port in service["ports"]) or len(service["ports"]) != 1:
        yield "compose.yaml: serves others than this host without keys"


def setting_faults():
    """Each variable of the chart and of the unit is one of a setting."""
    defaults = read("config/default.toml").replace("\n# ", "\n")
    sources = ["deploy/helm/agent-runtime/templates/_helpers.tpl", "deploy/helm/agent-runtime/templates/deployment-commands.yaml"]
    sources += ["deploy/systemd/agent-runtime.service", "deploy/systemd/agent-runtime.env", "compose.yaml"]
    sources += ["deploy/systemd/agent-runtime.service.d/cgroups.conf"]
    for source in sources:
        for section, key in re.findall(r"AGENT_RUNTIME__([A-Z_]+?)__([A-Z_]+)\b", read(source)):
            section, key = section.lower().replace("__", "."), key.lower()
            if "__" in key:
                inner, key = key.rsplit("__", 1)
                section += f".{inner}"
            names = [key, key.removesuffix("_file")]
            block = re.search(rf"^\[{re.escape(section)}\]\n(.*?)(?=^\[|\Z)", defaults, re.MULTILINE | re.DOTALL)
            if section.startswith("providers"):
                continue
            if block is None or not re.search(rf"^({'|'.join(names)}) = ", block.group(1), re.MULTILINE):
                yield f"{source}: there is no setting {section}.{key}"


def image_faults(dockerfile):
    for name in ("STORE__URL", "STORE__LISTEN_URL", "BOARD__URL"):
        if re.search(rf"^\s*(ENV )?\s*AGENT_RUNTIME__{name}=", dockerfile, re.MULTILINE):
            yield f"Dockerfile: with AGENT_RUNTIME__{name}, nobody can set AGENT_RUNTIME__{name}_FILE"


def page_faults():
    floor = re.search(r"^GLIBC_FLOOR=(.*)$", read("scripts/package-release"), re.MULTILINE).group(1)
    if f"glibc {floor}" not in read("docs/install.md"):
        yield f"docs/install.md: does not name glibc {floor}"
    values = yaml.safe_load(read("deploy/helm/agent-runtime/values.yaml"))
    page = read("docs/kubernetes.md")
    for key in ("storeUrl", "mcpStateKey", "openaiSealKey"):
        if f"--from-literal={values['secret'][key]}=" not in page:
            yield f"docs/kubernetes.md: makes a Secret without {values['secret'][key]}"
    found = manifests_of(page)
    if [document["kind"] for document in found] != ["Job"]:
        yield f"docs/kubernetes.md: has {[document['kind'] for document in found]}, not the Job of the first key"
    for document in found:
        for fault in manifests.faults([document]):
            yield f"docs/kubernetes.md: {fault}"
    unit = read("deploy/systemd/agent-runtime.service")
    if "SystemCallFilter=~" not in unit or "MemoryDenyWriteExecute=" in unit.replace("# MemoryDenyWriteExecute=", ""):
        yield "agent-runtime.service: its protections break commands"
    defaults = tomllib.loads(read("config/default.toml"))
    grace = manifests.seconds(defaults["runs"]["shutdown_grace"]) + manifests.SERVICE_SECONDS
    stop = int(re.search(r"^TimeoutStopSec=([0-9]+)$", unit, re.MULTILINE).group(1))
    if stop < grace:
        yield f"agent-runtime.service: is killed after {stop} s, and needs {grace} s"


def manifests_of(page):
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    documents = [document for block in blocks for document in yaml.safe_load_all(block)]
    return [document for document in documents if "kind" in document]
