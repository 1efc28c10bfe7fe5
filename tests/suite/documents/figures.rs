//! Compares the figures of README.md and docs/deployment.md with docs/benchmarks.md, which has them
//! from a measurement, and those of docs/scaling.md with what the command computes.

use std::process::Command;

use super::blocks::{pages, read, tables};
use crate::support::languages::has_python;

#[test]
fn the_figures_of_other_pages_are_those_of_the_page_on_benchmarks() {
    let page = read("docs/benchmarks.md");
    let section = |heading: &str| {
        let (_, rest) = page
            .split_once(heading)
            .unwrap_or_else(|| panic!("{heading} is not there"));
        rest.split("\n## ").next().unwrap()
    };
    let measured = ["\n## On PostgreSQL\n", "\n## On SQLite\n"].map(section);
    let tables = pages().into_iter().flat_map(|page| tables(&read(&page)));
    let figures: Vec<_> = tables
        .filter(|(mark, _)| mark == "figures")
        .map(|(_, rows)| rows)
        .collect();
    assert!(figures.len() >= 2 && figures.iter().all(|rows| rows.len() > 2));
    for row in figures.iter().flatten() {
        let [name, shown @ ..] = &row[..] else {
            panic!("a row is empty")
        };
        assert_eq!(shown.len(), measured.len(), "{name}");
        for (shown, measured) in shown.iter().zip(measured) {
            assert!(
                measured.contains(&format!("| {name} | {shown} |")),
                "docs/benchmarks.md does not have {shown} for {name}"
            );
        }
    }
}

#[test]
fn the_model_of_the_page_on_scaling_is_what_the_command_prints() {
    if !has_python() {
        return;
    }
    let page = read("docs/scaling.md");
    let (_, rest) = page.split_once("<!-- table: capacity -->\n").unwrap();
    let (table, _) = rest.split_once("\n\n").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/capacity");
    let printed = Command::new("python3").arg(script).output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap().trim_end(), table);
}
