//! Compares docs/console.md with the console: it has each page with its address, and its pictures
//! in both themes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::blocks::{code_spans, read};

#[test]
fn the_document_of_the_console_has_each_page_with_its_pictures() {
    let (text, routes) = (read("docs/console.md"), read("console/routes.js"));
    let paths = routes.split("{ path: '").skip(1);
    let addresses: BTreeSet<String> = paths
        .map(|rest| {
            let parts = rest.split('\'').next().unwrap().split('/');
            let named = parts.map(|part| match part.strip_prefix(':') {
                Some(name) => format!("{{{name}}}"),
                None => part.to_owned(),
            });
            named.collect::<Vec<_>>().join("/")
        })
        .collect();
    assert!(addresses.len() > 10, "{addresses:?}");
    let spans: BTreeSet<String> = code_spans(&text).into_iter().collect();
    for address in &addresses {
        assert!(spans.contains(address), "docs/console.md has no page {address}");
    }

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/console");
    let entries = fs::read_dir(folder).unwrap();
    let pictures: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let shown = text.split("](console/").skip(1);
    let shown: Vec<&str> = shown.map(|rest| rest.split(')').next().unwrap()).collect();
    assert_eq!(shown.len(), 2 * addresses.len());
    assert_eq!(
        shown.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
        pictures
    );
    for pair in shown.chunks(2) {
        let page = pair[0].strip_suffix("-light.png").unwrap();
        assert_eq!(pair[1], format!("{page}-dark.png"));
    }
}
