//! The words for the end of a command, and for files that the session can't have.

use std::error::Error;
use std::time::Duration;

use crate::builtin::environment_tool::and_more;
use sandbox::Exit;
use workspace::checkout::SkippedFiles;

/// The most skipped files that a result names.
const MAX_NAMED: usize = 10;

/// Returns a note about the end of a command; `None` if it succeeded.
pub(super) fn end_note(exit: &Exit, wall_time: Duration) -> Option<String> {
    let killed = |why: &str| Some(format!("killed, since it {why} than a command may"));
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("exit code {code}")),
        Exit::Signal(signal) => Some(format!("a signal ended it: {signal}")),
        Exit::TimedOut => {
            let seconds = wall_time.as_secs_f64();
            Some(format!("killed after {seconds:.1} s, since its time was spent"))
        }
        Exit::CpuExceeded => killed("used more processor time"),
        Exit::MemoryExceeded => killed("used more memory"),
        Exit::ProcessesExceeded => killed("had more processes"),
        Exit::DiskExceeded => Some(
            "killed, since the files of this run took up more of the disk than they may; the temporary ones and what \
             is not part of the session may be gone"
                .to_owned(),
        ),
        Exit::OutputExceeded => killed("wrote more output"),
        Exit::Cancelled => Some("stopped".to_owned()),
        Exit::Failed { message } => Some(format!("it could not run: {message}")),
    }
}

/// Adds notes to the output of a command. `without` stands for no output.
pub(super) fn with_notes(output: String, without: &str, note: Option<String>, skipped: &SkippedFiles) -> String {
    let mut text = output;
    if text.is_empty() {
        text.push_str(without);
    }
    let skipped = (!skipped.named.is_empty()).then(|| not_stored(skipped));
    for note in [note, skipped].into_iter().flatten() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(["[", &note, "]"]);
    }
    text
}

/// Returns the text for the model about an error, with the output before it. The error comes first,
/// since the end of a long text may be cut.
pub(super) fn with_output(error: &dyn Error, output: &str) -> String {
    if output.is_empty() {
        return error.to_string();
    }
    format!("{error}\nThe output before the error:\n{output}")
}

fn not_stored(skipped: &SkippedFiles) -> String {
    let named = skipped.named.iter().take(MAX_NAMED);
    let named: Vec<_> = named.map(|one| format!("{} ({})", one.path, one.reason)).collect();
    let more = and_more(skipped.named.len() - named.len() + skipped.more);
    format!("not part of the session: {}{more}", named.join(", "))
}
