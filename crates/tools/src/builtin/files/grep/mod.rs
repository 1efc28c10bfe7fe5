//! `grep`: the lines of files that match a regular expression.

mod render;
mod search;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use self::render::{Display, FileMatches, Mode, matches_of};
use self::search::{End, MAX_PATTERN_LENGTH, Query};
use super::edits::{current, with_ephemeral};
use super::ignored::{include_ignored_schema, with_left_out};
use super::paths::{directory_path, directory_schema, explained};
use super::select::{self, Pattern, Selected, selected};
use super::text::{counted, is_binary};
use crate::builtin::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use tasks::off_thread::{by_size, off_thread};
use values::json::Value;
use values::tenant::TenantId;
use workspace::{Entry, FilePath, Tree, TreeError};

/// The results that a call shows, unless it asks for another number.
const DEFAULT_RESULTS: usize = 100;
/// The most results that a call shows.
const MAX_RESULTS: usize = 5_000;
/// The most lines around a match that are shown.
const MAX_CONTEXT: usize = 10;
/// Larger files are not searched.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The most bytes of all files that one call searches.
const MAX_BYTES: u64 = 256 << 20;
/// The time that one call searches.
const MAX_TIME: Duration = Duration::from_secs(20);
/// The most bytes of a result. The executor stores a long one in a file.
const MAX_RESULT_BYTES: usize = 4 << 20;
/// The most files that are loaded together.
const MAX_LOADED_FILES: usize = 128;
/// The most bytes of files that are loaded together, unless a single file has more.
const MAX_LOADED_BYTES: u64 = 4 << 20;
/// How much slower a search is than a read of the same bytes.
const SLOWNESS: u64 = 16;

#[derive(Debug, Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    mode: Option<Mode>,
    #[serde(default)]
    context: usize,
    max_results: Option<usize>,
    #[serde(default)]
    include_ignored: bool,
}

/// Makes the tool.
pub(super) fn grep_files() -> FunctionTool {
    let properties = json!({
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATTERN_LENGTH,
            "description": "The regular expression (syntax of RE2 and Rust, without lookaround and \
                            backreferences), such as fn \\w+_tool or TODO|FIXME. It matches within a line.",
        },
        "path": directory_schema(
            "The directory or the file to search. Leave it out for the whole workspace.",
        ),
        "glob": {
            "type": "string",
            "minLength": 1,
            "maxLength": select::MAX_PATTERN_LENGTH,
            "description": "Searches only files whose paths match, such as *.rs or src/**/*.ts.",
        },
        "literal": {
            "type": "boolean",
            "description": "Whether the pattern is plain text, in which no character is special.",
        },
        "ignore_case": {"type": "boolean", "description": "Whether case does not matter."},
        "mode": {
            "type": "string",
            "enum": ["lines", "files", "count"],
            "description": "lines (the default) shows the matching lines with their numbers, files only the \
                            paths of the files, count the number of matching lines of each file.",
        },
        "include_ignored": include_ignored_schema(),
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_CONTEXT,
            "description": "How many lines to show before and after each match; 0 by default.",
        },
        "max_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RESULTS,
            "description": "The most matching lines to show, or the most files in the other modes; 100 by \
                            default.",
        },
    });
    let description = "Searches the content of the workspace's files for a regular expression. Shows each file \
                       with its matching lines as NUMBER: LINE. Use it to find where something is, before you \
                       read whole files. Skips binary files.";
    let spec = environment_tool("grep", Effect::Reads, description, properties, &["pattern"]);
    FunctionTool {
        spec,
        run: |arguments, context| Box::pin(grep(arguments, context)),
        stores_long_output: true,
    }
}

async fn grep(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let arguments: Arguments = read_arguments(arguments)?;
    let tree = current(context).await?;
    let path = directory_path(&tree, arguments.path.as_deref()).await?;
    let tree = with_ephemeral(context, &tree, path.as_ref(), |_, size| size <= MAX_FILE_BYTES).await?;
    let pattern = match &arguments.glob {
        Some(glob) => Some(Pattern::read(&tree, glob).await?),
        None => None,
    };
    let Arguments {
        literal,
        ignore_case,
        include_ignored,
        ..
    } = arguments;
    let compile = move || Query::new(&arguments.pattern, literal, ignore_case);
    // To compile a short pattern may take milliseconds.
    let query = off_thread(tree.tenant(), compile).await.map_err(ToolError::new)?;
    let selected = files(&tree, path.as_ref(), pattern, include_ignored).await;
    let selected = explained(&tree, selected).await?;
    let end = End {
        at: Instant::now() + MAX_TIME,
        cancellation: context.cancellation.clone(),
    };
    let mut search = Search {
        query,
        end,
        mode: arguments.mode.unwrap_or(Mode::Lines),
        context: arguments.context,
        max_results: arguments.max_results.unwrap_or(DEFAULT_RESULTS),
        found: Found::default(),
    };
    let searched = search.search_all(&tree, selected.entries).await;
    explained(&tree, searched).await?;
    let ephemeral = context.environment.ephemeral(path.as_ref());
    let text = with_left_out(search.into_text(), selected.ignored, &ephemeral);
    Ok(ToolOutput::text(text))
}

/// Returns the files to search: the file at the path, or the files below it that match the pattern.
async fn files(
    tree: &Tree,
    path: Option<&FilePath>,
    pattern: Option<Pattern>,
    include_ignored: bool,
) -> Result<Selected, TreeError> {
    if let Some(path) = path {
        // A symlink leads to a file that is searched anyway.
        let real_path = tree.resolve(path).await?;
        let entry = match &real_path {
            Some(real_path) => tree.entry(real_path).await?,
            None => None,
        };
        if let Some(file @ Entry::File { .. }) = entry {
            return Ok(Selected {
                entries: vec![(path.clone(), file)],
                ignored: 0,
            });
        }
    }
    selected(tree, path, pattern, include_ignored).await
}

/// A search that is in progress.
struct Search {
    query: Query,
    end: End,
    mode: Mode,
    context: usize,
    max_results: usize,
    found: Found,
}

/// The matches of a search so far.
#[derive(Debug, Default)]
struct Found {
    text: String,
    /// The matching lines.
    lines: usize,
    /// The files with matches.
    files: usize,
    /// The bytes that were searched.
    bytes: u64,
    binary: usize,
    too_large: usize,
    /// Whether there may be more than the limit of results.
    is_cut: bool,
    /// The files that were not searched, since the time or the bytes of a call ended.
    unsearched: usize,
}

impl Search {
    async fn search_all(&mut self, tree: &Tree, mut files: Vec<(FilePath, Entry)>) -> Result<(), TreeError> {
        files.retain(|(_, entry)| {
            let size = size(entry);
            self.found.too_large += usize::from(size.is_some_and(|size| size > MAX_FILE_BYTES));
            size.is_some_and(|size| size <= MAX_FILE_BYTES)
        });
        let mut rest = files.as_slice();
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch(rest));
            let (paths, entries): (Vec<_>, Vec<_>) = batch.iter().cloned().unzip();
            let loaded = tree.read_entries(&entries).await?;
            for (index, (path, file)) in paths.into_iter().zip(loaded).enumerate() {
                self.found.bytes += file.len() as u64;
                if self.is_full() {
                    self.found.is_cut = true;
                    return Ok(());
                }
                if self.found.bytes > MAX_BYTES || !self.search_file(tree.tenant(), path, file).await {
                    self.found.unsearched = rest.len() - index;
                    return Ok(());
                }
            }
            rest = after;
        }
        Ok(())
    }

    /// Returns whether there is no room for more results.
    fn is_full(&self) -> bool {
        let results = match self.mode {
            Mode::Lines => self.found.lines,
            Mode::Files | Mode::Count => self.found.files,
        };
        results >= self.max_results || self.found.text.len() > MAX_RESULT_BYTES
    }

    /// Searches one file. Returns whether there was time for all of it.
    async fn search_file(&mut self, tenant: &TenantId, path: FilePath, file: Bytes) -> bool {
        if is_binary(&file) {
            self.found.binary += 1;
            return true;
        }
        let display = Display {
            mode: self.mode,
            context: self.context,
            max_matches: self.max_results - self.found.lines.min(self.max_results),
            max_bytes: MAX_RESULT_BYTES,
        };
        let (query, end) = (self.query.clone(), self.end.clone());
        let size = file.len() as u64;
        let search = move || matches_of(&path, &file, &query, display, &end);
        // A pattern may take far longer than its file is large.
        let FileMatches {
            text,
            count,
            is_cut,
            is_out_of_time,
        } = by_size(tenant, size.saturating_mul(SLOWNESS), search).await;
        self.found.text.push_str(&text);
        self.found.lines += count;
        self.found.files += usize::from(count > 0);
        self.found.is_cut |= is_cut;
        !is_out_of_time
    }

    fn into_text(self) -> String {
        let found = self.found;
        let mut text = found.text;
        let files = counted(found.files, "file");
        // Writing to a string does not fail.
        let _ = match self.mode {
            _ if found.files == 0 => write!(text, "[no line matches"),
            Mode::Files => write!(text, "[{files}"),
            Mode::Lines | Mode::Count => write!(text, "[{} in {files}", counted(found.lines, "matching line")),
        };
        if found.is_cut {
            let _ = write!(text, "; there may be more: this is the limit of results");
        }
        if found.binary > 0 {
            let _ = write!(text, "; skipped {}", counted(found.binary, "binary file"));
        }
        if found.too_large > 0 {
            let _ = write!(
                text,
                "; skipped {} of more than {MAX_FILE_BYTES} bytes",
                counted(found.too_large, "file")
            );
        }
        if found.unsearched > 0 {
            let _ = write!(
                text,
                "; the search ended early, and {} not searched to the end: search a directory or use glob",
                if found.unsearched == 1 {
                    "1 file was".to_owned()
                } else {
                    format!("{} files were", found.unsearched)
                }
            );
        }
        text.push(']');
        text
    }
}

/// Returns the size of a file; `None` for a symlink, whose file is searched itself.
fn size(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::File { size, .. } => Some(*size),
        Entry::Symlink { .. } | Entry::Directory { .. } => None,
    }
}

/// Returns how many files are loaded together; at least one.
fn batch(files: &[(FilePath, Entry)]) -> usize {
    let mut bytes = 0_u64;
    let fits = files.iter().take(MAX_LOADED_FILES).take_while(|(_, entry)| {
        bytes = bytes.saturating_add(size(entry).unwrap_or_default());
        bytes <= MAX_LOADED_BYTES
    });
    fits.count().max(1)
}
