#!/bin/sh
# Copies the manifests into a folder, with an empty source for each package, and an empty build
# script. So cargo builds the dependencies there, and nothing of ours:
#
#   sh scripts/lib/stand-ins.sh FOLDER
set -eu
folder=$1
for manifest in Cargo.toml crates/*/Cargo.toml; do
    package=$folder/$(dirname "$manifest")
    mkdir -p "$package/src"
    cp "$manifest" "$package"
    touch "$package/src/lib.rs"
done
echo 'fn main() {}' > "$folder/src/main.rs"
echo 'fn main() {}' > "$folder/build.rs"
cp Cargo.lock "$folder"
