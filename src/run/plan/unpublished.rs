//! Checks a run that publishes nothing. It is stored only at its end and without output, so it
//! can't be queued, repeated or answered. It may answer open calls in a branch of its own: the
//! session with the calls still waits, so others may answer them, too.

use crate::run::refusal::Refusal;
use crate::run::request::RunRequest;
use agent::definition::DurabilityChoice;
use agent::record::RunMode;

/// Refuses a request that needs a stored run, if it asks for one that publishes nothing.
/// `is_answering` says whether the run finishes the open step of its base.
pub(in crate::run) fn check_unpublished(request: &RunRequest, is_answering: bool) -> Result<(), Refusal> {
    if request.publish {
        return Ok(());
    }
    let what = if request.mode == RunMode::Async {
        "the mode `async`"
    } else if request.thread.is_some() {
        "a `thread`"
    } else if request.idempotency.is_some() {
        "an idempotency key"
    } else if request.durability == Some(DurabilityChoice::Step) {
        "the durability `step`"
    } else if !request.answers.is_fork && (is_answering || !request.answers.is_empty()) {
        "a base session that waits for answers, unless `conflict` is `fork`"
    } else {
        return Ok(());
    };
    let message = format!("a run that publishes nothing can't have {what}");
    Err(Refusal::invalid("publish", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::answers::Answers;
    use values::session::hash_definition;

    use crate::run::request::RequestKey;

    /// Returns what the refusal says that the run can't have.
    fn refused(change: impl FnOnce(&mut RunRequest), is_answering: bool) -> Option<String> {
        let mut request = RunRequest::new(RunMode::Sync);
        request.publish = false;
        change(&mut request);
        let refusal = check_unpublished(&request, is_answering).err()?.to_string();
        let what = refusal.strip_prefix("publish: a run that publishes nothing can't have ");
        Some(what.unwrap().to_owned())
    }

    #[test]
    fn a_run_that_publishes_nothing_is_light() {
        let key = RequestKey {
            key: "k".to_owned(),
            digest: hash_definition(b"request"),
            valid_until: None,
        };
        let words = |text: &str| Some(text.to_owned());
        assert_eq!(refused(|_| (), false), None);
        assert_eq!(refused(|request| request.mode = RunMode::Stream, false), None);
        assert_eq!(
            refused(|request| request.mode = RunMode::Async, false),
            words("the mode `async`")
        );
        assert_eq!(
            refused(|request| request.thread = Some("ada".parse().unwrap()), false),
            words("a `thread`")
        );
        assert_eq!(
            refused(|request| request.idempotency = Some(key), false),
            words("an idempotency key")
        );
        assert_eq!(
            refused(|request| request.durability = Some(DurabilityChoice::Step), false),
            words("the durability `step`")
        );
        let denied = Answers {
            deny_open: true,
            ..Answers::default()
        };
        let waiting = words("a base session that waits for answers, unless `conflict` is `fork`");
        assert_eq!(refused(|request| request.answers = denied.clone(), false), waiting);
        assert_eq!(refused(|_| (), true), waiting);
        let forked = Answers {
            is_fork: true,
            ..denied
        };
        assert_eq!(refused(|request| request.answers = forked, true), None);
    }
}
