//! Reads Markdown: fenced blocks, tables and the marks before them. A mark is an HTML comment,
//! which readers do not see.

use std::fs;
use std::path::Path;

/// A fenced block.
#[derive(Debug)]
pub(super) struct Block {
    /// The line of its opening fence, from 1.
    pub(super) line: usize,
    /// The word after the fence: `sh`, `python`, `json`, `text`, `toml`.
    pub(super) language: String,
    /// The text between the fences.
    pub(super) text: String,
    /// The comment right before it, if it begins with `example:`.
    pub(super) mark: Option<String>,
}

/// A table, row by row, cell by cell, without its head.
pub(super) type Table = Vec<Vec<String>>;

/// Reads a file of the repository.
pub(crate) fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the names of README.md and of every page right below `docs/`.
pub(super) fn pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let guides = names.filter_map(|name| Some(format!("docs/{}.md", name.strip_suffix(".md")?)));
    let mut pages: Vec<String> = guides.chain(["README.md".to_owned()]).collect();
    pages.sort();
    pages
}

/// Returns the fenced blocks of a document.
pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut mark = None;
    let mut lines = markdown.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let text: Vec<&str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| line.trim() != "```")
                .collect();
            found.push(Block {
                line: index + 1,
                language: language.to_owned(),
                text: text.join("\n"),
                mark: mark.take(),
            });
        } else if !line.trim().is_empty() {
            mark = comment(line, "example:");
        }
    }
    found
}

/// Returns the tables that have a mark such as `<!-- table: fields Run -->`, each with the words of
/// its mark.
pub(crate) fn tables(markdown: &str) -> Vec<(String, Table)> {
    let mut found = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(mark) = comment(line, "table:") {
            let rows = lines
                .by_ref()
                .skip_while(|line| line.trim().is_empty())
                .take_while(|line| line.starts_with('|'))
                .skip(2)
                .map(cells);
            found.push((mark, rows.collect()));
        }
    }
    found
}

/// Returns what stands between backticks outside of fenced blocks.
pub(super) fn code_spans(markdown: &str) -> Vec<String> {
    let mut fenced = false;
    let mut spans = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            spans.extend(spans_of(line));
        }
    }
    spans
}

/// Returns what stands between the backticks of one line.
pub(crate) fn spans_of(line: &str) -> impl Iterator<Item = String> {
    line.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn comment(line: &str, kind: &str) -> Option<String> {
    let words = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    words.strip_prefix(kind).map(|words| words.trim().to_owned())
}

fn cells(row: &str) -> Vec<String> {
    // A cell may hold an escaped bar.
    let row = row.replace("\\|", "\u{1}");
    row.trim()
        .trim_matches('|')
        .split('|')
        .map(|cell| cell.trim().replace('\u{1}', "|"))
        .collect()
}
