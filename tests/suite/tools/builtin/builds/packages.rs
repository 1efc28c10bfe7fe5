//! Cargo, npm and pytest. Each stores what it has made of a project: as ephemeral files, which end
//! with the run, or as files of the session.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use test_support::languages::{node_prefix, python};
use values::path_patterns::PathPatterns;

use super::super::shell::Host;
use super::Line;
use crate::support::text::assert_contains;

const INSTALL: &str = "npm install --offline --no-audit --no-fund --loglevel=error";

/// Two hosts whose commands can read these folders. One retains directories.
fn hosts(folders: &[PathBuf], ephemeral: &[&str]) -> [Host; 2] {
    [4, 0].map(|retained| {
        Host::with(|settings| {
            settings.retained_directories = retained;
            settings.ephemeral = PathPatterns::new(ephemeral.iter().copied()).unwrap();
            // Every command can read /usr.
            let others = folders.iter().filter(|folder| !folder.starts_with("/usr"));
            settings.read_only.extend(others.cloned());
        })
    })
}

impl Line {
    async fn edit(&self, path: &str, old: &str, new: &str) {
        let edits = json!([{"old": old, "new": new}]);
        let edited = self.desk.call("edit_file", json!({"path": path, "edits": edits})).await;
        assert_contains!(edited.unwrap(), "1 replacement");
    }

    async fn read(&self, path: &str) -> Result<String, String> {
        self.desk.call("read_file", json!({"path": path})).await
    }

    /// Returns whether the session has a file below a directory.
    async fn has_below(&self, directory: &str) -> bool {
        let paths = self.desk.paths().await;
        paths.iter().any(|path| path.starts_with(directory))
    }
}

/// Returns the folder of the Rust toolchain that has built this test.
fn toolchain() -> PathBuf {
    let cargo = Path::new(env!("CARGO")).canonicalize().unwrap();
    cargo.parent().and_then(Path::parent).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn cargo_builds_what_was_edited_and_nothing_else() {
    let toolchain = toolchain();
    for ephemeral in [&["target/"][..], &[]] {
        let is_ephemeral = !ephemeral.is_empty();
        let [one, other] = hosts(std::slice::from_ref(&toolchain), ephemeral);
        for places in [[&one, &one], [&one, &other]] {
            let mut line = Line::new(places[0]);
            line.write(
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                 [profile.dev]\ndebug = false\nincremental = false\nstrip = true\n",
            )
            .await;
            line.write(
                "src/main.rs",
                "fn main() {\n    println!(\"says {}\", app::value());\n}\n",
            )
            .await;
            line.write("src/lib.rs", "pub fn value() -> u8 {\n    1\n}\n").await;
            line.sh(&format!(
                "export PATH='{}/bin':$PATH CARGO_TERM_COLOR=never",
                toolchain.display()
            ))
            .await;
            let run = "cargo run --offline 2>&1";
            assert_contains!(line.sh(run).await, "Compiling app v0.1.0", "Finished", "says 1\n");
            let is_built = |said: &str, value: u8| {
                assert_contains!(said, "Finished", &format!("says {value}\n"));
                said.contains("Compiling")
            };
            assert!(!is_built(&line.sh(run).await, 1));
            // File tools see the files either way.
            assert_contains!(line.read("target/debug/app.d").await.unwrap(), "src/lib.rs");
            assert_eq!(line.has_below("target/").await, !is_ephemeral);

            line.next_on(places[1]).await;
            assert_eq!(line.read("target/debug/app.d").await.is_err(), is_ephemeral);
            assert_eq!(is_built(&line.sh(run).await, 1), is_ephemeral);
            // An edit by a tool before a restart, and one between commands.
            line.edit("src/lib.rs", "    1\n", "    2\n").await;
            line.next_on(places[0]).await;
            assert!(is_built(&line.sh(run).await, 2));
            line.edit("src/lib.rs", "    2\n", "    3\n").await;
            assert!(is_built(&line.sh(run).await, 3));
            assert!(!is_built(&line.sh(run).await, 3));
            // A build after an edit that changes no output.
            line.sh("echo '// The end.' >> src/main.rs").await;
            assert!(is_built(&line.sh(run).await, 3));
            line.next_on(places[1]).await;
            assert_eq!(is_built(&line.sh(run).await, 3), is_ephemeral);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn npm_finds_a_local_package_and_its_edits() {
    let Some(prefix) = node_prefix() else {
        return;
    };
    for ephemeral in [&["node_modules/"][..], &[]] {
        let is_ephemeral = !ephemeral.is_empty();
        let [one, other] = hosts(std::slice::from_ref(&prefix), ephemeral);
        let mut line = Line::new(&one);
        line.write(
            "package.json",
            r#"{"name": "app", "version": "1.0.0", "private": true, "scripts": {"start": "node main.js"}}"#,
        )
        .await;
        line.write("main.js", "console.log(require('local'));\n").await;
        line.write("local/package.json", r#"{"name": "local", "version": "1.0.0"}"#)
            .await;
        line.write("local/index.js", "module.exports = 'says 1';\n").await;
        line.sh(&format!("export PATH='{}/bin':$PATH", prefix.display())).await;
        assert_contains!(line.sh(&format!("{INSTALL} ./local 2>&1")).await, "added 1 package");
        assert_eq!(line.sh("npm start -s 2>&1").await, "says 1\n");
        assert_contains!(line.sh(&format!("{INSTALL} 2>&1")).await, "up to date");
        assert_contains!(
            line.read("node_modules/.package-lock.json").await.unwrap(),
            "node_modules/local"
        );
        line.edit("local/index.js", "says 1", "says 2").await;
        assert_eq!(line.sh("npm start -s 2>&1").await, "says 2\n");
        for (host, number) in [&one, &other, &one].into_iter().zip(2..) {
            line.next_on(host).await;
            assert_eq!(line.has_below("node_modules/").await, !is_ephemeral);
            assert_contains!(line.read("package-lock.json").await.unwrap(), "\"local\"");
            let expected = if is_ephemeral { "added 1 package" } else { "up to date" };
            assert_contains!(line.sh(&format!("{INSTALL} 2>&1")).await, expected);
            assert_eq!(line.sh("npm start -s 2>&1").await, format!("says {number}\n"));
            let (old, new) = (format!("says {number}"), format!("says {}", number + 1));
            line.edit("local/index.js", &old, &new).await;
        }
    }
}

/// Returns the folders of a Python with libraries: of the libraries, and of the programs.
fn python_folders(python: &str) -> Vec<PathBuf> {
    let script = "import sys; print(sys.prefix); print(sys.base_prefix)";
    let answer = Command::new(python).args(["-c", script]).output().unwrap();
    let folders = String::from_utf8(answer.stdout).unwrap();
    folders.lines().map(PathBuf::from).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_repeats_what_failed_and_reads_what_was_edited() {
    let Some(python) = python() else {
        return;
    };
    let folders = python_folders(&python);
    for ephemeral in [&["__pycache__/"][..], &[]] {
        let [one, other] = hosts(&folders, ephemeral);
        for places in [[&one, &one], [&one, &other]] {
            let mut line = Line::new(places[0]);
            line.write("pkg/__init__.py", "def f():\n    return 1\n").await;
            line.write(
                "test_f.py",
                "import pkg\n\ndef test_f():\n    assert pkg.f() == 22\n\ndef test_other():\n    assert pkg.f()\n",
            )
            .await;
            // The libraries of the tests have plugins that take seconds to load.
            line.sh("export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1").await;
            let test = |options: &str| format!("'{python}' -m pytest -q {options} 2>&1");
            assert_contains!(line.sh(&test("")).await, "1 failed, 1 passed");
            let compiled = "stat -c '%n %.9Y' pkg/__pycache__/*.pyc";
            let before = line.sh(compiled).await;
            assert_contains!(before, "pkg/__pycache__/__init__.cpython");

            line.next_on(places[1]).await;
            assert_eq!(line.has_below("pkg/__pycache__/").await, ephemeral.is_empty());
            let failed = line.sh(&test("--last-failed")).await;
            assert_contains!(failed, "1 failed in");
            if ephemeral.is_empty() {
                assert_eq!(line.sh(compiled).await, before, "nothing is compiled again");
            }
            line.edit("pkg/__init__.py", "return 1", "return 22").await;
            line.next_on(places[0]).await;
            let passed = line.sh(&test("--last-failed")).await;
            assert_contains!(passed, "1 passed in");
            line.next_on(places[1]).await;
            assert_contains!(line.sh(&test("")).await, "2 passed");
        }
    }
}
