//! `check-config`: shows the settings in force with their origins, and reports mistakes.

use anyhow::ensure;

use super::output::{print_note, print_piece};
use crate::app::{self, Extensions, Finding};
use crate::config::Loaded;

/// Prints every key with its value and origin, and then the mistakes. Fails if something would not
/// work.
pub(super) async fn check(loaded: &Loaded, extensions: Extensions) -> anyhow::Result<()> {
    print_piece(&loaded.explain())?;
    let (mut errors, mut warnings) = (0, 0);
    for finding in app::check(loaded, extensions).await {
        match finding {
            Finding::Error(problem) => {
                errors += 1;
                print_note(format_args!("error: {problem}"))?;
            }
            Finding::Warning(problem) => {
                warnings += 1;
                print_note(format_args!("warning: {problem}"))?;
            }
        }
    }
    let (errors_found, warnings_found) = (counted(errors, "error"), counted(warnings, "warning"));
    ensure!(errors == 0, "the configuration has {errors_found} and {warnings_found}");
    Ok(print_note(format_args!(
        "the configuration can be used: it has {errors_found} and {warnings_found}"
    ))?)
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
