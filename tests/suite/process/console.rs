//! The console: its code, and what people do with it in a browser. `tests/console` has the checks
//! that need a browser. They start the binary themselves, since they kill it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use test_support::languages::console_tools;

use super::browser::run_checks;
use super::clients::succeed;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_code_of_the_console_passes_its_tests_and_fits_its_types() {
    let Some(tools) = console_tools() else { return };
    succeed(Command::new(&tools.node).arg("--test").args(tests_in("console/tests")));
    // The libraries may be in another folder than that of the configuration.
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "extends": format!("{ROOT}/console/jsconfig.json"),
        "compilerOptions": {
            "typeRoots": [tools.modules.join("@types")],
            "paths": {"*": [tools.modules.join("*")]},
        },
    });
    let path = folder.path().join("jsconfig.json");
    fs::write(&path, config.to_string()).unwrap();
    let compiler = tools.modules.join("typescript/bin/tsc");
    succeed(Command::new(&tools.node).arg(compiler).arg("--project").arg(path));
}

#[test]
fn every_page_is_accessible_and_asks_its_own_service_only() {
    run("pages.test.js");
}

#[test]
fn guides_are_accessible_and_work_by_keyboard() {
    run("guides.test.js");
}

#[test]
fn people_watch_runs_answer_calls_and_log_in() {
    run("journeys.test.js");
}

#[test]
fn people_fork_compare_and_merge_sessions() {
    run("trees.test.js");
}

#[test]
fn people_chat_in_the_page_of_the_examples() {
    run("chat_example.test.js");
}

/// Runs a file of `tests/console`.
fn run(file: &str) {
    let Some(tools) = console_tools() else { return };
    run_checks(
        &tools,
        "AGENT_RUNTIME_TEST_CONSOLE_NODE",
        &format!("tests/console/{file}"),
    );
}

/// Returns the files of a folder with tests. Newer versions of Node.js take no folder.
fn tests_in(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}
