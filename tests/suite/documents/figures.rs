//! Compares the figures of README.md with docs/benchmarks.md, which has them from a measurement.

use super::blocks::{read, tables};

#[test]
fn the_figures_of_the_readme_are_those_of_the_page_on_benchmarks() {
    let page = read("docs/benchmarks.md");
    let section = |heading: &str| {
        let (_, rest) = page
            .split_once(heading)
            .unwrap_or_else(|| panic!("{heading} is not there"));
        rest.split("\n## ").next().unwrap()
    };
    let measured = ["\n## On PostgreSQL\n", "\n## On SQLite\n"].map(section);
    let tables = tables(&read("README.md"));
    let (_, figures) = tables.iter().find(|(mark, _)| mark == "figures").unwrap();
    assert!(figures.len() > 4);
    for row in figures {
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
