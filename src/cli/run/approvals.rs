//! Asks a person on the terminal for the approvals that a run waits for.

use std::io::{self, IsTerminal as _};

use tokio::task::spawn_blocking;

use super::outcome::{OpenCallFields, Outcome};
use crate::cli::output::{plain, print_note};
use agent::answers::{Answer, AnswerContent};
use values::session::OpenCallKind;

/// The most bytes of a reason, as the API accepts it.
const MAX_REASON: usize = 4096;

/// Returns whether a person on the terminal can answer all open calls of a run: one request
/// answers them all, and only approvals need no more than a decision.
pub(super) fn can_ask(run: &Outcome) -> bool {
    let calls = run.open_calls();
    let are_approvals = calls.iter().all(|call| call.kind == OpenCallKind::Approval);
    !calls.is_empty() && are_approvals && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a decision about each open call; `None` if the input ends before the last one.
pub(super) async fn ask(run: &Outcome) -> anyhow::Result<Option<Vec<Answer>>> {
    let mut answers = Vec::new();
    for call in run.open_calls() {
        let Some(content) = ask_about(call).await? else {
            return Ok(None);
        };
        answers.push(Answer {
            call_id: call.call_id.clone(),
            arguments_hash: call.arguments_hash,
            content,
        });
    }
    Ok(Some(answers))
}

async fn ask_about(call: &OpenCallFields) -> anyhow::Result<Option<AnswerContent>> {
    let arguments = serde_json::to_string_pretty(&call.arguments)?;
    print_note(format_args!(
        "{} wants to run with {}",
        plain(&call.tool),
        plain(&arguments)
    ))?;
    if let Some(reason) = &call.reason {
        print_note(plain(reason))?;
    }
    loop {
        print_note("approve? y, n, or the reason to deny it:")?;
        // Reading can't be cancelled. The thread does not outlive the process.
        let line = spawn_blocking(|| {
            let mut line = String::new();
            io::stdin()
                .read_line(&mut line)
                .map(|length| (length > 0).then_some(line))
        });
        let Some(line) = line.await?? else { return Ok(None) };
        if let Some(content) = decision(line.trim()) {
            return Ok(Some(content));
        }
    }
}

/// Reads a decision; `None` if the line has none.
fn decision(line: &str) -> Option<AnswerContent> {
    match line.to_ascii_lowercase().as_str() {
        "" => None,
        "y" | "yes" => Some(AnswerContent::Approve { remember: false }),
        "n" | "no" => Some(AnswerContent::Deny { reason: None }),
        _ => (line.len() <= MAX_REASON).then(|| AnswerContent::Deny {
            reason: Some(line.to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_approves_denies_or_is_a_reason() {
        let deny = |reason: Option<&str>| {
            Some(AnswerContent::Deny {
                reason: reason.map(ToOwned::to_owned),
            })
        };
        let approve = Some(AnswerContent::Approve { remember: false });
        for (line, expected) in [
            ("y", approve.clone()),
            ("Yes", approve),
            ("n", deny(None)),
            ("NO", deny(None)),
            ("Not on Fridays", deny(Some("Not on Fridays"))),
            ("yes, but not now", deny(Some("yes, but not now"))),
            ("", None),
            (&"x".repeat(MAX_REASON + 1), None),
        ] {
            assert_eq!(decision(line), expected, "{line}");
        }
    }
}
