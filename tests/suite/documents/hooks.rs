//! Compares the page on hooks with the code: the table of permissions and the hooks that there are.

use agent::builtin_hooks;
use agent::hooks::PERMISSIONS;

use super::blocks::{read, spans_of, tables};

const PAGE: &str = "docs/hooks.md";

#[test]
fn the_table_of_permissions_is_that_of_the_code() {
    let table = tables(&read(PAGE))
        .into_iter()
        .find(|(mark, _)| mark == "permissions")
        .unwrap()
        .1;
    let shown: Vec<(String, String)> = table
        .iter()
        .map(|row| (spans_of(&row[0]).collect(), row[2].clone()))
        .collect();
    let known: Vec<(String, String)> = PERMISSIONS
        .iter()
        .map(|(point, fields)| {
            let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
            (point.as_str().to_owned(), fields.join(", "))
        })
        .collect();
    assert_eq!(shown, known);
}

#[test]
fn every_hook_has_its_heading() {
    let page = read(PAGE);
    for factory in builtin_hooks() {
        let heading = format!("\n## {}\n", factory.name());
        assert!(page.contains(&heading), "{PAGE} says nothing of {}", factory.name());
    }
}
