//! Compares the figures of docs/benchmarks.md with the measured ones in docs/benchmarks/, those of
//! other pages with that page, and those of docs/scaling.md with what the command computes.

use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use test_support::languages::has_python;

use super::blocks::{Table, pages, read, tables};

const PAGE: &str = "docs/benchmarks.md";
const SERVICE: &str = "docs/benchmarks/service.jsonl";
const WORST_TENANT: &str = "docs/benchmarks/worst-tenant.jsonl";

/// A figure of the service, as `scripts/bench --format json` prints it.
#[derive(Debug, Deserialize)]
struct Measured {
    engine: String,
    figure: String,
    unit: String,
    values: Vec<f64>,
    aim: Option<String>,
    limits: String,
}

/// How long a tenant waited for its responses. Figures of memory have no times.
#[derive(Debug, Deserialize)]
struct Wait {
    figure: String,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    met: Option<bool>,
}

impl Measured {
    fn sorted(&self) -> Vec<f64> {
        let mut values = self.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// Returns the middle value. Of two values it is the larger one, as in the load program.
    fn median(&self) -> f64 {
        self.sorted()[self.values.len() / 2]
    }

    fn median_text(&self) -> String {
        format!("{} {}", number(self.median()), self.unit).trim_end().to_owned()
    }

    fn measured(&self) -> String {
        match self.sorted()[..] {
            [_] => self.median_text(),
            [least, .., most] => format!("{} ({} to {})", self.median_text(), number(least), number(most)),
            [] => panic!("{} has no values", self.figure),
        }
    }

    fn is_met(&self) -> Option<bool> {
        let (sign, bound) = self.aim.as_ref()?.split_once(' ').unwrap();
        let bound: f64 = bound.parse().unwrap();
        match sign {
            ">=" => Some(self.median() >= bound),
            "<=" => Some(self.median() <= bound),
            _ => panic!("{}: the aim has the sign {sign}", self.figure),
        }
    }
}

/// Reads a file that has one JSON object per line.
fn objects<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error} in {line}"));
    read(file).lines().map(parse).collect()
}

/// Writes a number with three digits, or with all before the point, as the load program does.
fn number(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn yes_or_no(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

/// Returns the tables of a page that are marked as figures.
fn figure_tables(page: &str) -> Vec<Table> {
    let tables = tables(&read(page)).into_iter().filter(|(mark, _)| mark == "figures");
    tables.map(|(_, rows)| rows).collect()
}

/// Returns the section of the page on benchmarks.
fn section(heading: &str) -> String {
    let page = read(PAGE);
    let (_, rest) = page
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("{heading} is not there"));
    rest.split("\n## ").next().unwrap().to_owned()
}

#[test]
fn the_figures_of_the_page_on_benchmarks_were_measured() {
    let figures: Vec<Measured> = objects(SERVICE);
    let find = |engine: &str, name: &str| {
        let mut found = figures.iter();
        found.find(|figure| figure.engine == engine && figure.figure == name)
    };
    let rows = figure_tables(PAGE).concat();
    assert!(rows.len() > 20, "{}", rows.len());
    for row in rows {
        let name = &row[0];
        let on_postgres = find("PostgreSQL", name).unwrap_or_else(|| panic!("{SERVICE} does not have {name}"));
        let expected = [
            name.clone(),
            on_postgres.measured(),
            find("SQLite", name).map(Measured::measured).unwrap_or_default(),
            on_postgres.aim.clone().unwrap_or_default(),
            yes_or_no(on_postgres.is_met()).to_owned(),
            on_postgres.limits.clone(),
        ];
        assert_eq!(row, expected);
    }
}

#[test]
fn the_page_on_benchmarks_lists_every_aim_that_is_missed() {
    let section = section("Aims that are missed");
    let figures: Vec<Measured> = objects(SERVICE);
    let mut missed = 0;
    for figure in figures.iter().filter(|figure| figure.is_met() == Some(false)) {
        let aim = figure.aim.as_ref().unwrap();
        let row = format!("| {} | {} | {aim} | ", figure.figure, figure.median_text());
        assert!(section.contains(&row), "{PAGE} does not list {row}");
        missed += 1;
    }
    let has_bound = |row: &&str| row.contains("| <= ") || row.contains("| >= ");
    assert_eq!(section.lines().filter(has_bound).count(), missed);
}

#[test]
fn the_waits_beside_the_worst_tenant_were_measured() {
    let waits: Vec<Wait> = objects(WORST_TENANT);
    let row = |wait: &Wait| {
        let (middle, late) = (number(wait.p50_ms?), number(wait.p99_ms?));
        let met = yes_or_no(wait.met);
        Some(format!("| {} | {middle} ms | {late} ms | {met} |", wait.figure))
    };
    let measured: Vec<String> = waits.iter().filter_map(row).collect();
    let section = section("One tenant does its worst");
    let shown: Vec<&str> = section.lines().filter(|line| line.starts_with("| light ")).collect();
    assert!(shown.len() > 5, "{}", shown.len());
    for row in shown {
        assert!(
            measured.iter().any(|measured| measured == row),
            "{WORST_TENANT} does not have {row}"
        );
    }
}

#[test]
fn the_figures_of_other_pages_are_those_of_the_page_on_benchmarks() {
    let known = figure_tables(PAGE).concat();
    let others = pages().into_iter().filter(|page| page != PAGE);
    let figures: Vec<Table> = others.flat_map(|page| figure_tables(&page)).collect();
    assert!(figures.len() >= 2 && figures.iter().all(|rows| rows.len() > 2));
    for row in figures.iter().flatten() {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(
            known.iter().any(|known| known.starts_with(row)),
            "{PAGE} does not have {row:?}"
        );
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
