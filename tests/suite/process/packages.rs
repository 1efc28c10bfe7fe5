//! Installing Debian packages for scripts, by `scripts/lib/packages.sh`: nothing is upgraded.

use std::fs;
use std::process::{Command, Stdio};

/// Stands for `apt-get`. Prints the file `plan`, which is replaced by `later` when the lists are
/// renewed. Installs nothing while there is a file `old` or `broken`.
const APT_GET: &str = r#"#!/bin/sh
echo "$AS$*" >> calls
case "$*" in
*" --simulate "*) cat plan ;;
*" update") if [ -e later ]; then mv later plan; rm -f old; fi ;;
*) [ ! -e old ] && [ ! -e broken ] ;;
esac
"#;

const SUDO: &str = r#"#!/bin/sh
[ "$1" != -n ] || shift
export AS="sudo "
exec "$@"
"#;

/// The shell writes the programs, since a file can't be executed while a test has it open.
const SCRIPT: &str = r#"
set -euo pipefail
install apt-get.sh apt-get
install sudo.sh sudo
PATH=$PWD:$PATH
source "$0"
packages_install foo bar
"#;

const NEW: &str = "\
Inst libfoo (1.0 Debian:12.1/stable [amd64])
Inst foo (1.0 Debian:12.1/stable [amd64])
Inst bar (1.0 Debian:12.1/stable [all])
Conf libfoo (1.0 Debian:12.1/stable [amd64])
";
const UPGRADE: &str = "\
Inst libfoo [1.0] (2.0 Debian:12.1/stable [amd64])
Inst foo (2.0 Debian:12.1/stable [amd64])
";

const PLAN: &str = "-q --simulate install --no-install-recommends --no-upgrade --no-remove foo bar\n";
const INSTALL: &str = "install --yes --no-install-recommends --no-upgrade --no-remove foo bar";
const NEWER: &str = "missing packages: foo bar. They need newer versions of: libfoo \n";

#[test]
fn packages_are_installed_without_an_upgrade() {
    let sudo = if rustix::process::geteuid().is_root() {
        ""
    } else {
        "sudo "
    };
    let [update, install] = ["update", INSTALL].map(|action| format!("{sudo}-q -o DPkg::Lock::Timeout=300 {action}\n"));
    let (update, install) = (update.as_str(), install.as_str());
    let retried = [PLAN, install, update, PLAN, install];
    check(&[("plan", NEW)], 0, "", &[PLAN, install]);
    check(&[("plan", UPGRADE)], 1, NEWER, &[PLAN]);
    // The lists do not have the packages yet.
    check(&[("later", NEW)], 0, "", &[PLAN, update, PLAN, install]);
    check(&[("later", UPGRADE)], 1, NEWER, &[PLAN, update, PLAN]);
    check(&[], 1, "apt-get can't install foo bar\n", &[PLAN, update, PLAN]);
    // The mirror does not have the packages of the lists any more.
    check(&[("plan", NEW), ("old", ""), ("later", NEW)], 0, "", &retried);
    let failed = "apt-get could not install foo bar\n";
    check(&[("plan", NEW), ("old", "")], 1, failed, &retried);
    // The lists are renewed once only.
    check(
        &[("later", NEW), ("broken", "")],
        1,
        failed,
        &[PLAN, update, PLAN, install],
    );
}

/// Installs packages, with these files for `apt-get`. Checks the exit code, the messages and the
/// calls of `apt-get`.
fn check(files: &[(&str, &str)], code: i32, message: &str, calls: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("apt-get.sh", APT_GET), ("sudo.sh", SUDO)].iter().chain(files) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lib/packages.sh");
    let done = Command::new("bash")
        .args(["-c", SCRIPT, library])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let messages = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(code), "{files:?}: {messages}");
    assert!(messages.contains(message), "{files:?}: {messages}");
    let called = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert_eq!(called, calls.concat(), "{files:?}");
}
