"""Finds faults in rendered manifests that no schema knows: parts that don't fit together, missing
protections, and a grace that is too short."""

import copy
import re

SECRETS = "/run/secrets/agent-runtime"
# What the service needs after drain_delay and shutdown_grace.
SERVICE_SECONDS = 12
DRAIN_DELAY = "AGENT_RUNTIME__SHUTDOWN__DRAIN_DELAY"
SHUTDOWN_GRACE = "AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE"
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# Workers for commands, the migration and the first key need nothing else of the Secret.
STORE_ONLY = ("commands", "migrate", "first-key")
# The key with certificates in the values of ci/.
STORE_CA = "store-ca"
FRONTS = ("all", "api")
KINDS = {
    "ConfigMap": "v1",
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Ingress": "networking.k8s.io/v1",
    "Job": "batch/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    # It belongs to the Prometheus Operator, and no tool here has its schema.
    "PodMonitor": "monitoring.coreos.com/v1",
    "Service": "v1",
    "ServiceAccount": "v1",
}
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def faults(documents):
    """Returns what is wrong with the manifests of one release."""
    return [fault for check in CHECKS for fault in check(documents)]


def of_kind(documents, *kinds):
    return [document for document in documents if document["kind"] in kinds]


def name_of(document):
    return f"{document['kind']}/{document['metadata']['name']}"


def pods(documents):
    """Returns each object that makes pods, with the template of its pods."""
    return [(document, document["spec"]["template"]) for document in of_kind(documents, "Deployment", "Job")]


def component(template):
    return template["metadata"]["labels"]["app.kubernetes.io/component"]


def variables(container):
    return {variable["name"]: variable.get("value") for variable in container.get("env", [])}


def hits(selector, documents):
    """Returns the Deployments whose pods have all labels of a selector."""
    deployments = of_kind(documents, "Deployment")
    return [
        name_of(deployment)
        for deployment in deployments
        if selector and selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    ]


def kinds(documents):
    """A kind that is not known here would also have no schema, and so be checked by nothing."""
    for document in documents:
        if KINDS.get(document["kind"]) != document["apiVersion"]:
            yield f"{name_of(document)}: the kind {document['apiVersion']}/{document['kind']} is not known"


def selectors(documents):
    for deployment in of_kind(documents, "Deployment"):
        name, spec = name_of(deployment), deployment["spec"]
        if hits(spec["selector"]["matchLabels"], documents) != [name]:
            yield f"{name}: its selector does not match its own pods alone"
        for constraint in spec["template"]["spec"].get("topologySpreadConstraints", []):
            if constraint["labelSelector"] != spec["selector"]:
                yield f"{name}: a spread constraint counts other pods"
    covered = []
    for budget in of_kind(documents, "PodDisruptionBudget"):
        found = hits(budget["spec"]["selector"]["matchLabels"], documents)
        covered += found
        if len(found) != 1:
            yield f"{name_of(budget)}: matches the pods of {found}"
    if sorted(covered) != sorted(name_of(deployment) for deployment in of_kind(documents, "Deployment")):
        yield f"PodDisruptionBudgets match the pods of {covered}"
    policies = [hits(policy["spec"]["podSelector"].get("matchLabels"), documents) for policy in of_kind(documents, "NetworkPolicy")]
    if policies and sorted(policies) != sorted([name_of(deployment)] for deployment in of_kind(documents, "Deployment")):
        yield f"NetworkPolicies match the pods of {policies}"


def services(documents):
    by_name = {name_of(document): document for document in documents}
    for service in of_kind(documents, "Service"):
        found = hits(service["spec"]["selector"], documents)
        if len(found) != 1 or component(by_name[found[0]]["spec"]["template"]) not in FRONTS:
            yield f"{name_of(service)}: routes to {found}"
            continue
        ports = by_name[found[0]]["spec"]["template"]["spec"]["containers"][0]["ports"]
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in [known["name"] for known in ports]:
                yield f"{name_of(service)}: {found[0]} has no port {port['targetPort']}"
    for ingress in of_kind(documents, "Ingress"):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                service = by_name.get(f"Service/{backend['name']}")
                if service is None or backend["port"]["name"] not in [port["name"] for port in service["spec"]["ports"]]:
                    yield f"{name_of(ingress)}: no such port of a Service: {backend}"


def restricted(documents):
    """The Pod Security Standard "restricted", and what the chart promises beyond it."""
    for document, template in pods(documents):
        name, spec = name_of(document), template["spec"]
        security = spec.get("securityContext", {})
        for key, value in POD_SECURITY.items():
            if security.get(key) != value:
                yield f"{name}: securityContext.{key} is not {value}"
        if security.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            yield f"{name}: has no seccomp profile"
        for key in ("automountServiceAccountToken", "enableServiceLinks"):
            if spec.get(key) is not False:
                yield f"{name}: {key} is not false"
        for key in ("hostNetwork", "hostPID", "hostIPC", "initContainers"):
            if spec.get(key):
                yield f"{name}: has {key}"
        for container in spec["containers"]:
            if container.get("securityContext") != CONTAINER_SECURITY:
                yield f"{name}: the container {container['name']} is not restricted"
            if "memory" not in container.get("resources", {}).get("limits", {}):
                yield f"{name}: has no limit of memory"
            tag = container["image"].rpartition("/")[2]
            if not ("@sha256:" in tag or ":" in tag) or tag.endswith(":latest"):
                yield f"{name}: the image {container['image']} is not pinned"
        for volume in spec.get("volumes", []):
            if not volume.keys() & {"configMap", "secret", "emptyDir"}:
                yield f"{name}: the volume {volume['name']} is of another kind"
            if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
                yield f"{name}: the volume {volume['name']} has no limit"


def seconds(text):
    number, unit = re.fullmatch(r"([0-9]+)([a-z]+)", text or "0s").groups()
    return int(number) * UNITS[unit]


def grace(documents):
    for deployment in of_kind(documents, "Deployment"):
        template = deployment["spec"]["template"]
        found = variables(template["spec"]["containers"][0])
        if SHUTDOWN_GRACE not in found:
            yield f"{name_of(deployment)}: names no shutdown_grace"
        needed = seconds(found.get(DRAIN_DELAY)) + seconds(found.get(SHUTDOWN_GRACE))
        if needed + SERVICE_SECONDS > template["spec"]["terminationGracePeriodSeconds"]:
            yield f"{name_of(deployment)}: is killed before the service has shut down"
        if component(template) in FRONTS and seconds(found.get(DRAIN_DELAY)) == 0:
            yield f"{name_of(deployment)}: refuses connections before load balancers know"


def probes(documents):
    for deployment in of_kind(documents, "Deployment"):
        name, template = name_of(deployment), deployment["spec"]["template"]
        container = template["spec"]["containers"][0]
        paths = {
            kind: container[kind]["httpGet"]["path"]
            for kind in ("startupProbe", "livenessProbe", "readinessProbe")
            if kind in container
        }
        # A liveness probe of /readyz would restart pods while the database is away.
        expected = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
        if paths != ({} if component(template) == "commands" else expected):
            yield f"{name}: its probes are {paths}"
        certificate = variables(container).get("AGENT_RUNTIME__HTTP__TLS__CERTIFICATE")
        schemes = {container[kind]["httpGet"].get("scheme") for kind in paths}
        if paths and schemes != {"HTTPS" if certificate else "HTTP"}:
            yield f"{name}: its probes speak {schemes}"
        if certificate and certificate != f"{SECRETS}-tls/tls.crt":
            yield f"{name}: its certificate is {certificate}"


def secret_files(documents):
    for document, template in pods(documents):
        name, spec = name_of(document), template["spec"]
        mounts = {mount["mountPath"]: mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        if set(mounts.values()) != set(volumes):
            yield f"{name}: mounts {sorted(mounts.values())} of the volumes {sorted(volumes)}"
            continue
        for volume in volumes.values():
            mode = volume.get("secret", {}).get("defaultMode", 0o440)
            if mode != 0o440:
                yield f"{name}: the files of secrets have the mode {mode:o}"
        secret = volumes[mounts[SECRETS]]["secret"]
        if secret["secretName"] in [made["metadata"]["name"] for made in of_kind(documents, "Secret")]:
            yield f"{name}: the chart makes the Secret"
        items = {item["path"] for item in secret.get("items", [])}
        found = variables(spec["containers"][0])
        if "AGENT_RUNTIME__STORE__URL_FILE" not in found or "AGENT_RUNTIME__STORE__URL" in found:
            yield f"{name}: the address of the store is not in a file"
        used = {value.rpartition("/")[2] for key, value in found.items() if key.endswith("_FILE")}
        if any(not value.startswith(f"{SECRETS}/") for key, value in found.items() if key.endswith("_FILE")):
            yield f"{name}: reads a secret that is not mounted"
        if component(template) in STORE_ONLY and (items - {STORE_CA} != used or len(used) != 1):
            yield f"{name}: has the keys {sorted(items)} of the Secret, and needs {sorted(used)}"
        if len(found) != len(spec["containers"][0]["env"]):
            yield f"{name}: sets a variable twice"


def references(documents):
    """Pods use only ConfigMaps and ServiceAccounts that are there, and hooks use none."""
    made = {name_of(document) for document in documents}
    for document, template in pods(documents):
        name, spec = name_of(document), template["spec"]
        used = {f"ConfigMap/{volume['configMap']['name']}" for volume in spec["volumes"] if "configMap" in volume}
        if "serviceAccountName" in spec:
            used.add(f"ServiceAccount/{spec['serviceAccountName']}")
        for container in spec["containers"]:
            for source in container.get("envFrom", []) + [variable.get("valueFrom", {}) for variable in container["env"]]:
                used |= {f"{kind}: {value['name']}" for kind, value in source.items() if kind.startswith("configMap")}
        if document["kind"] == "Job" and used:
            yield f"{name}: a Job that runs before the others refers to {sorted(used)}"
        for missing in sorted(used - made):
            yield f"{name}: there is no {missing}"
        arguments = spec["containers"][0]["args"]
        if "--config" in arguments:
            path = arguments[arguments.index("--config") + 1]
            mounts = {mount["mountPath"]: mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
            volume = mounts.get(path.rpartition("/")[0])
            config = next((of["configMap"]["name"] for of in spec["volumes"] if of["name"] == volume), None)
            maps = {of["metadata"]["name"]: of["data"] for of in of_kind(documents, "ConfigMap")}
            if path.rpartition("/")[2] not in maps.get(config, {}):
                yield f"{name}: no ConfigMap has {path}"
        if any("subPath" in mount for mount in spec["containers"][0]["volumeMounts"]):
            yield f"{name}: a file that is mounted by subPath never changes"


def scaling(documents):
    targets = {scaler["spec"]["scaleTargetRef"]["name"] for scaler in of_kind(documents, "HorizontalPodAutoscaler")}
    deployments = {deployment["metadata"]["name"]: deployment["spec"] for deployment in of_kind(documents, "Deployment")}
    for target in targets - deployments.keys():
        yield f"HorizontalPodAutoscaler: there is no Deployment {target}"
    for name, spec in deployments.items():
        if (name in targets) == ("replicas" in spec):
            yield f"Deployment/{name}: {'both' if name in targets else 'neither'} a scaler and replicas"
        rolling = spec["strategy"]["rollingUpdate"]
        if rolling != {"maxSurge": 1, "maxUnavailable": 0}:
            yield f"Deployment/{name}: an update takes pods away before there are new ones"


def metrics(documents):
    for monitor in of_kind(documents, "PodMonitor"):
        selector = monitor["spec"]["selector"]
        parts = selector["matchExpressions"][0]["values"]
        found = [name for name in hits(selector["matchLabels"], documents)]
        by_name = {name_of(document): document["spec"]["template"] for document in of_kind(documents, "Deployment")}
        for name in [name for name in found if component(by_name[name]) in parts]:
            ports = [port["name"] for port in by_name[name]["spec"]["containers"][0]["ports"]]
            if any(endpoint["port"] not in ports for endpoint in monitor["spec"]["podMetricsEndpoints"]):
                yield f"{name_of(monitor)}: {name} has no such port"
        if not found:
            yield f"{name_of(monitor)}: matches no pods"


CHECKS = [kinds, selectors, services, restricted, grace, probes, secret_files, references, scaling, metrics]


def unnoticed(documents, changes):
    """Breaks good manifests in one way after the other, and returns what was not noticed."""
    missed = []
    for path, value, expected in changes:
        broken = copy.deepcopy(documents)
        kind, component_name, *keys = path
        target = next(
            document
            for document in of_kind(broken, kind)
            if document["metadata"]["labels"]["app.kubernetes.io/component"] == component_name
        )
        for key in keys[:-1]:
            target = target[key]
        if value is REMOVED:
            del target[keys[-1]]
        else:
            target[keys[-1]] = value
        if not any(expected in fault for fault in faults(broken)):
            missed.append(f"{'.'.join(map(str, path))}: expected {expected!r}, found {faults(broken)}")
    return missed


REMOVED = object()
POD = ("spec", "template", "spec")
FIRST = (*POD, "containers", 0)
COMPONENT = "app.kubernetes.io/component"
# By the name of the values whose manifests they break.
BROKEN = {}
BROKEN["commands"] = [
    (("Job", "migrate", "kind"), "Jobs", "is not known"),
    (("Deployment", "all", "spec", "selector", "matchLabels", COMPONENT), "api", "its own pods alone"),
    (("Deployment", "all", *POD, "topologySpreadConstraints", 0, "labelSelector"), {}, "a spread constraint"),
    (("PodDisruptionBudget", "all", "spec", "selector", "matchLabels", COMPONENT), "api", "matches the pods of []"),
    (("PodDisruptionBudget", "all", "spec", "selector", "matchLabels", COMPONENT), "commands", "PodDisruptionBudgets match"),
    (("NetworkPolicy", "commands", "spec", "podSelector", "matchLabels", COMPONENT), "command", "NetworkPolicies match"),
    (("Service", "all", "spec", "selector", COMPONENT), "commands", "routes to"),
    (("Service", "all", "spec", "ports", 0, "targetPort"), "web", "has no port web"),
    (("Deployment", "all", *POD, "securityContext", "runAsNonRoot"), REMOVED, "runAsNonRoot"),
    (("Deployment", "commands", *POD, "securityContext", "seccompProfile"), {"type": "Unconfined"}, "seccomp"),
    (("Job", "migrate", *POD, "enableServiceLinks"), REMOVED, "enableServiceLinks"),
    (("Job", "migrate", *POD, "automountServiceAccountToken"), True, "automountServiceAccountToken"),
    (("Deployment", "all", *POD, "hostNetwork"), True, "hostNetwork"),
    (("Job", "migrate", *FIRST, "securityContext", "capabilities", "add"), ["SYS_PTRACE"], "not restricted"),
    (("Deployment", "commands", *FIRST, "securityContext", "readOnlyRootFilesystem"), False, "not restricted"),
    (("Deployment", "all", *FIRST, "resources", "limits"), {}, "limit of memory"),
    (("Deployment", "all", *FIRST, "image"), "registry:5000/agent-runtime", "is not pinned"),
    (("Deployment", "all", *FIRST, "image"), "registry/agent-runtime:latest", "is not pinned"),
    (("Deployment", "commands", *POD, "volumes", 2, "emptyDir"), {}, "has no limit"),
    (("Deployment", "all", *POD, "terminationGracePeriodSeconds"), 36, "is killed before"),
    (("Deployment", "all", *FIRST, "env", 1, "value"), "0s", "refuses connections"),
    (("Deployment", "all", *FIRST, "livenessProbe", "httpGet", "path"), "/readyz", "its probes"),
    (("Deployment", "commands", *FIRST, "livenessProbe"), {"httpGet": {"path": "/healthz"}}, "its probes"),
    (("Deployment", "all", *POD, "volumes", 1, "secret", "defaultMode"), 0o444, "the mode 444"),
    (("Deployment", "commands", *POD, "volumes", 1, "secret", "items"), REMOVED, "needs ['store-url']"),
    (("Deployment", "all", *FIRST, "env", 3, "value"), "/etc/store-url", "not mounted"),
    (("Deployment", "all", *FIRST, "env", 3, "name"), "AGENT_RUNTIME__STORE__URL", "not in a file"),
    (("Deployment", "all", *FIRST, "env", 0, "name"), "AGENT_RUNTIME__STORE__URL_FILE", "a variable twice"),
    (("Job", "migrate", *POD, "serviceAccountName"), "agent-runtime", "refers to"),
    (("Deployment", "all", *POD, "volumes", 0, "configMap", "name"), "other", "there is no ConfigMap/other"),
    (("Deployment", "all", *FIRST, "args"), ["serve", "--config", "/etc/other.toml"], "no ConfigMap has"),
    (("Deployment", "all", *FIRST, "volumeMounts", 0, "subPath"), "agent-runtime.toml", "subPath"),
    (("Deployment", "all", "spec", "replicas"), REMOVED, "neither a scaler"),
    (("Deployment", "all", "spec", "strategy", "rollingUpdate", "maxUnavailable"), 1, "takes pods away"),
]
BROKEN["all"] = [
    (("Deployment", "all", *FIRST, "livenessProbe", "httpGet", "scheme"), "HTTP", "its probes speak"),
    (("Deployment", "all", *POD, "volumes", 3, "secret", "defaultMode"), 0o444, "the mode 444"),
    (("Ingress", "all", "spec", "rules", 0, "http", "paths", 0, "backend", "service", "name"), "web", "no such port"),
    (("Ingress", "all", "spec", "rules", 0, "http", "paths", 0, "backend", "service", "port"), {"name": "web"}, "no such port"),
    (("Deployment", "all", *POD, "volumes", 1), {"name": "agents", "hostPath": {"path": "/srv"}}, "is of another kind"),
    (("Deployment", "all", *POD, "volumes", 1, "configMap", "name"), "agents", "there is no ConfigMap/agents"),
    (("Deployment", "all", *FIRST, "volumeMounts", 1), REMOVED, "of the volumes"),
]
BROKEN["split"] = [
    (("Deployment", "api", "spec", "replicas"), 2, "both a scaler and replicas"),
    (("HorizontalPodAutoscaler", "api", "spec", "scaleTargetRef", "name"), "agent-runtime", "there is no Deployment"),
    (("NetworkPolicy", "worker", "spec", "podSelector", "matchLabels"), {}, "NetworkPolicies match"),
    (("Service", "api", "spec", "selector", COMPONENT), "worker", "routes to"),
    (("Deployment", "worker", *POD, "terminationGracePeriodSeconds"), 146, "is killed before"),
    (("Deployment", "worker", *FIRST, "ports", 1), REMOVED, "has no such port"),
    (("PodMonitor", "metrics", "spec", "selector", "matchLabels"), {COMPONENT: "other"}, "matches no pods"),
]
