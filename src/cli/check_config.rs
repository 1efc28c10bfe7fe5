//! `check-config`: what is in force and where from, and what is wrong with it.

use anyhow::ensure;

use super::output::{print_note, print_piece};
use crate::app::{self, Extensions, Finding};
use crate::config::Loaded;

/// Prints every key with its value and origin, then what is wrong. Fails if something would not work.
pub(super) fn check(loaded: &Loaded, extensions: Extensions) -> anyhow::Result<()> {
    print_piece(&loaded.explain().to_string())?;
    let mut errors = 0;
    for finding in app::check(loaded, extensions) {
        match finding {
            Finding::Error(problem) => {
                errors += 1;
                print_note(format_args!("error: {problem}"))?;
            }
            Finding::Warning(problem) => print_note(format_args!("warning: {problem}"))?,
        }
    }
    let noun = if errors == 1 { "error" } else { "errors" };
    ensure!(errors == 0, "the configuration has {errors} {noun}");
    Ok(())
}
