# shellcheck shell=bash
# Installs Debian packages that are missing. Upgrades nothing: neither a package that is installed
# nor one that a new package needs. Sourced by the scripts that need programs of others.

# Installs packages. Fails, with a message, if one can't be installed, or not without an upgrade.
# As another user than root, it needs sudo.
packages_install() {
    local as_root=() apt plan upgrades
    [[ $# -gt 0 ]] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "these Debian packages, or their like, are missing: $*" >&2
        return 1
    fi
    if [[ $EUID -ne 0 ]]; then
        # Without a terminal sudo could only wait for a password in vain.
        if ! command -v sudo >/dev/null || { [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; }; then
            echo "missing packages; as root, run: apt-get install $*" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    apt=(apt-get -q -o DPkg::Lock::Timeout=300)
    # The lists of packages that the machine has fit what is installed, so they come first.
    if ! plan=$(packages_plan "$@"); then
        if ! packages_renew || ! plan=$(packages_plan "$@"); then
            echo "apt-get can't install $*" >&2
            return 1
        fi
    fi
    upgrades=$(sed -n 's/^Inst \([^ ]*\) \[.*/\1/p' <<<"$plan" | tr '\n' ' ')
    if [[ -n $upgrades ]]; then
        echo "missing packages: $*. They need newer versions of: $upgrades" >&2
        echo "to upgrade these, run as root: apt-get install $*" >&2
        return 1
    fi
    if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --yes --no-install-recommends \
        --no-upgrade --no-remove "$@" >&2; then
        return 0
    fi
    # A mirror drops the old versions of packages, so new lists may help.
    packages_renew || { echo "apt-get could not install $*" >&2 && return 1; }
    packages_install "$@"
}

# Unpacks a package into a folder, and installs nothing.
packages_unpack() {
    local package=$1 folder=$2 as_root=() apt=(apt-get -q)
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    if [[ $EUID -ne 0 ]] && command -v sudo >/dev/null; then
        as_root=(sudo -n)
    fi
    if ! (cd "$folder" && apt-get -q download "$package" >&2); then
        packages_renew || return 1
        (cd "$folder" && apt-get -q download "$package" >&2) || return 1
    fi
    dpkg-deb --extract "$folder"/"$package"_*.deb "$folder" && rm -- "$folder"/"$package"_*.deb
}

# Prints what would be installed.
packages_plan() {
    apt-get -q --simulate install --no-install-recommends --no-upgrade --no-remove "$@" 2>/dev/null
}

# Renews the lists of packages. Fails if they were renewed before.
packages_renew() {
    [[ -z ${PACKAGES_RENEWED-} ]] || return 1
    PACKAGES_RENEWED=1
    "${as_root[@]}" "${apt[@]}" update >&2 || echo "the package lists could not be renewed" >&2
}
