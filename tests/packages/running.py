"""Gives a binary what rendered manifests give to a pod: arguments, variables, files and probes."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import manifests
import seccomp

# The user of the images.
USER = 65532
PR_SET_NO_NEW_PRIVS = 38
START_SECONDS = 30
NAMESPACES = "user, PID and mount namespaces"
MISSING = "namespaces are required and missing"
# Nothing listens there.
NO_REDIS = "redis://127.0.0.1:1"


class Pod:
    """A folder that stands for the volumes of a pod, and the binary in it."""

    def __init__(self, binary, root, documents, document):
        self.root, self.document = pathlib.Path(root), document
        self.binary = self.root / "bin/agent-runtime"
        spec = document["spec"]["template"]["spec"]
        self.container = spec["containers"][0]
        if not self.binary.exists():
            self.binary.parent.mkdir()
            shutil.copy(binary, self.binary)
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        maps = {of["metadata"]["name"]: of["data"] for of in manifests.of_kind(documents, "ConfigMap")}
        for volume in spec["volumes"]:
            folder = self.inside(mounts[volume["name"]])
            folder.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                write_volume(folder, maps[volume["configMap"]["name"]])
            elif volume["name"] == "tls":
                write_volume(folder, certificate())
            elif "secret" in volume:
                write_volume(folder, self.secrets())
            else:
                folder.chmod(0o777)

    def secrets(self):
        board = os.environ.get("AGENT_RUNTIME_TEST_REDIS_URL", NO_REDIS)
        # Where no board is left out.
        fixed = {"store-url": f"sqlite://{self.root}/store/store.db", "board-url": board}
        found = manifests.variables(self.container)
        names = {value.rpartition("/")[2] for key, value in found.items() if key.endswith("_FILE")}
        return {name: fixed.get(name, "0" * 64) for name in names}

    def inside(self, path):
        return self.root / self.document["metadata"]["name"] / path.lstrip("/")

    def environment(self):
        paths = re.compile(r"^/(run|etc|sandbox)/")
        found = manifests.variables(self.container)
        values = {key: str(self.inside(value)) if paths.match(value) else value for key, value in found.items()}
        return {"PATH": os.environ["PATH"], "TMPDIR": str(self.inside("/tmp")), **values}

    def arguments(self):
        return [str(self.inside(word)) if word.startswith("/") else word for word in self.container["args"]]

    def call(self, *arguments):
        return subprocess.run(
            [self.binary, *arguments], env=self.environment(), cwd=self.root / "store", capture_output=True, text=True,
            timeout=120, **self.user()
        )

    @contextlib.contextmanager
    def started(self, *more, profile=None):
        """Starts the container. Its log is a file, so that nothing waits for a reader."""
        log = log_of(self)

        def restrict():
            ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            if profile is not None:
                seccomp.apply(profile)

        with open(log, "w") as output:
            process = subprocess.Popen(
                [self.binary, *self.arguments(), *more], env=self.environment(), cwd=self.root / "store",
                stdout=output, stderr=output, preexec_fn=restrict, **self.user()
            )
        try:
            yield process, log
        finally:
            process.kill()
            process.wait()

    @staticmethod
    def user():
        return {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}


def certificate():
    """Makes what a Secret with a certificate has."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=agents", "-days", "30"]
        command += ["-keyout", f"{folder}/tls.key", "-out", f"{folder}/tls.crt"]
        subprocess.run(command, capture_output=True, check=True)
        return {name: pathlib.Path(folder, name).read_text() for name in ("tls.crt", "tls.key")}


def write_volume(folder, files):
    """Writes files as kubelet does: a link for each, by way of a folder with a date."""
    dated = folder / "..2026_01_01_00_00_00.000000001"
    dated.mkdir(exist_ok=True)
    for name, text in files.items():
        (dated / name).write_text(text)
    for link, target in [("..data", dated.name), *((name, f"..data/{name}") for name in files)]:
        if not (folder / link).is_symlink():
            (folder / link).symlink_to(target)


@contextlib.contextmanager
def release(binary, documents):
    """Prepares a store with a key, and returns the pods by their parts."""
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        store = pathlib.Path(root) / "store"
        store.mkdir()
        store.chmod(0o777)
        found = manifests.pods(documents)
        yield {manifests.component(template): Pod(binary, root, documents, document) for document, template in found}


def faults(binary, name, documents):
    """Migrates, creates the first key, and checks the configuration of each pod."""
    with release(binary, documents) as pods:
        if "migrate" in pods:
            job = pods.pop("migrate")
            done = job.call(*job.arguments())
            if done.returncode != 0:
                yield f"{name}: the Job failed: {done.stderr.strip()}"
        front = pods.get("all") or pods["api"]
        options = front.arguments()[-2:]
        done = front.call("keys", "create", "--tenant", "acme", *options)
        if done.returncode != 0:
            yield f"{name}: the first key: {done.stderr.strip()}"
        for part, pod in pods.items():
            checked = pod.call("check-config", *pod.arguments()[-2:])
            found = re.findall(r"^(?:error|warning): .*$", checked.stderr, re.MULTILINE)
            known = rf"error: can't use the board {NO_REDIS}|error: the configuration has "
            found = [line for line in found if not re.match(known, line)]
            if found or (checked.returncode != 0 and NO_REDIS not in checked.stderr):
                yield f"{name}: check-config of {part}: {found or checked.stderr.strip()}"
                continue
            for key in pod.environment():
                if key.startswith("AGENT_RUNTIME__") and not re.search(rf"environment {key}\b", checked.stdout):
                    yield f"{name}: {part} has no setting from {key}"


def serving_faults(binary, documents):
    """Starts a pod that serves requests, probes it and shuts it down."""
    with release(binary, documents) as pods, socket.socket() as free:
        pods["migrate"].call(*pods["migrate"].arguments())
        pod = pods["all"]
        pod.call("keys", "create", "--tenant", "acme", *pod.arguments()[-2:])
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        seconds = pod.document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        with pod.started("--listen", address) as (process, log):
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                probe = pod.container[kind]["httpGet"]
                path, url = probe["path"], f"{probe['scheme'].lower()}://{address}"
                if not wait_for(lambda: status(url, path) == 200, process):
                    yield f"{kind}: {path} is not 200: {log.read_text()}"
                    return
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            if not wait_for(lambda: status(url, "/readyz") == 503, process):
                yield f"/readyz does not respond with 503 during the drain delay: {log.read_text()}"
            try:
                if process.wait(seconds) != 0:
                    yield f"the exit code is {process.returncode}: {log.read_text()}"
            except subprocess.TimeoutExpired:
                yield f"does not end within {seconds} s"
            drained = manifests.seconds(manifests.variables(pod.container)[manifests.DRAIN_DELAY])
            if time.monotonic() - began < drained:
                yield f"ended before the drain delay of {drained} s"


def command_faults(binary, documents, profiles):
    """Starts a worker for commands under each profile. Commands must have namespaces. Returns None
    if this host offers none."""
    found = []
    with release(binary, documents) as pods:
        pods["migrate"].call(*pods["migrate"].arguments())
        pod = pods["commands"]
        if not takes_commands(pod, None):
            # Any other failure is one of the manifests.
            return None if MISSING in log_of(pod).read_text() else [log_of(pod).read_text()]
        for name, profile in profiles.items():
            if not takes_commands(pod, profile):
                found.append(f"{name}: {log_of(pod).read_text()}")
        # The check notices a profile that refuses something.
        broken = json.loads(json.dumps(next(iter(profiles.values()))))
        for rule in broken["syscalls"]:
            rule["names"] = [call for call in rule["names"] if call != "pivot_root"]
        if takes_commands(pod, broken):
            found.append("a profile without pivot_root is not noticed")
    return found


def log_of(pod):
    return pod.root / f"{pod.document['metadata']['name']}.log"


def takes_commands(pod, profile):
    with pod.started(profile=profile) as (process, log):
        return wait_for(lambda: "taking commands" in log.read_text(), process) and NAMESPACES in log.read_text()


def status(url, path):
    # Kubelet checks no certificate either.
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(url + path, timeout=6, context=context) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def wait_for(condition, process):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if condition():
            return True
        if process.poll() is not None:
            return condition()
        time.sleep(0.05)
    return False
