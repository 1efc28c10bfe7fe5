"""Values that the schema of the chart must refuse, each with words of the message."""

import subprocess
import tempfile

import yaml

DIGEST = "sha256:" + "0" * 63
REFUSED = [
    ("mode: both", "/mode"),
    ("replicas: -1", "/replicas"),
    ("replicas: '2'", "/replicas"),
    ("replica: 3", "'replica'"),
    ("image: {tag: latest}", "/image/tag"),
    ("image: {tag: 'a b'}", "/image/tag"),
    (f"image: {{digest: '{DIGEST}'}}", "/image/digest"),
    ("image: {repository: 'Registry/Agent'}", "/image/repository"),
    ("image: {repository: ''}", "/image/repository"),
    ("image: {pullPolicy: Sometimes}", "/image/pullPolicy"),
    ("image: {pullSecrets: [{name: registry}]}", "/image/pullSecrets"),
    ("secret: {name: ''}", "/secret/name"),
    ("secret: {storeUrl: ''}", "/secret/storeUrl"),
    ("secret: {storeUrl: 'postgres://user:password@db/agents'}", "/secret/storeUrl"),
    ("secret: {storeCa: /etc/ssl/ca.pem}", "/secret/storeCa"),
    ("secret: {providers: {openai: 'sk proj'}}", "/secret/providers"),
    ("secret: {create: true}", "'create'"),
    ("tls: {secret: 'Agents TLS'}", "/tls/secret"),
    ("tls: {certificate: tls.crt}", "'certificate'"),
    ("config: {log: {format: json}}", "/config"),
    ("agents: {support.yaml: 'model = 1'}", "'support.yaml'"),
    ("agents: {../support.toml: 'model = 1'}", "'../support.toml'"),
    ("extraEnv: {AWS_REGION: eu}", "/extraEnv"),
    ("extraEnv: [{name: AWS_REGION}]", "/extraEnv"),
    ("extraEnv: [{name: 'AWS-REGION', value: eu}]", "/extraEnv"),
    ("resources: {limits: {memory: 2 GB}}", "/resources/limits/memory"),
    ("resources: {limit: {memory: 2Gi}}", "'limit'"),
    ("worker: {replicas: 1.5}", "/worker/replicas"),
    ("termination: {drainDelaySeconds: 5s}", "/termination/drainDelaySeconds"),
    ("termination: {graceSeconds: -1}", "/termination/graceSeconds"),
    ("migrate: {job: 'yes'}", "/migrate/job"),
    ("service: {port: 0}", "/service/port"),
    ("service: {type: Cluster}", "/service/type"),
    ("ingress: {host: ''}", "/ingress/host"),
    ("autoscaling: {targetCPUUtilization: 120}", "/autoscaling/targetCPUUtilization"),
    ("autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 2}", "maxReplicas is less"),
    ("metrics: {port: 80}", "/metrics/port"),
    ("networkPolicy: {from: {}}", "/networkPolicy/from"),
    ("tolerations: [{effect: Never}]", "/tolerations"),
    ("nodeSelector: {ssd: true}", "/nodeSelector"),
    ("commands: {enabled: 1}", "/commands/enabled"),
    ("commands: {sandboxSize: big}", "/commands/sandboxSize"),
    ("commands: {namespaces: {seccompProfile: /etc/commands.json}}", "/commands/namespaces/seccompProfile"),
    ("commands: {privileged: true}", "'privileged'"),
]


def accepted(helm, chart):
    """Returns the bad values that the chart does not refuse, or refuses for another reason."""
    faults = []
    for text, words in REFUSED:
        yaml.safe_load(text)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([helm, "template", "release", chart, "--values", file.name], capture_output=True, text=True)
        if done.returncode == 0 or words not in done.stderr:
            faults.append(f"{text}: expected a refusal with {words!r}: {done.stderr.strip() or 'it was accepted'}")
    return faults
