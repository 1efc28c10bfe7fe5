#!/usr/bin/env bash
# Makes the repository that the agent clones, and starts the service on it. Arguments go to the
# service. Everything that is written is in the folder `data` beside this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

repository=$PWD/data/shop.git
if [[ ! -d $repository ]]; then
    mkdir -p data
    files=$(mktemp -d)
    cp repository/*.py "$files"
    git -C "$files" init --quiet --initial-branch main
    git -C "$files" add .
    git -C "$files" -c user.name=shop -c user.email=shop@example.org commit --quiet --message "Add prices"
    git clone --quiet --bare "$files" "$repository"
    rm -rf "$files"
fi

# Commands see the programs of this machine and the files of their session. This is what they see
# besides.
exec agent-runtime serve --set "sandbox.read_only=[\"$repository\"]" "$@"
