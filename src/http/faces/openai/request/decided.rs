//! Decisions in the input of a request that names no base. Such a client sends the whole
//! conversation, and the id of a request for an approval names the run that waits.

use std::collections::BTreeSet;

use super::items::Item;
use crate::http::faces::openai::ids::{ItemKind, parse_item_id};
use values::ids::RunId;

/// Returns the run about whose calls an input decides: that of the last decision, unless the model
/// has gone on since. Removes the other decisions, which are history.
pub(in crate::http) fn decided_run(items: &mut Vec<(usize, Item)>) -> Option<RunId> {
    let last = items.iter().rev().find_map(|(_, item)| match item {
        Item::Decision { request_id, .. } => Some(asking_run(request_id)),
        item => goes_on(item).then_some(None),
    });
    let run_id = last.flatten();
    items.retain(|(_, item)| match item {
        Item::Decision { request_id, .. } => asking_run(request_id) == run_id,
        _ => true,
    });
    run_id
}

/// Removes the items up to the last one of the model, which the waiting session has. Decisions and
/// the results of its open calls stay.
pub(in crate::http) fn after_request(items: &mut Vec<(usize, Item)>, open: &BTreeSet<&str>) {
    let last = items.iter().rfind(|(_, item)| item.is_of_model());
    let Some(last) = last.map(|(index, _)| *index) else {
        return;
    };
    items.retain(|(index, item)| match item {
        Item::Decision { .. } => true,
        Item::Output { call_id, .. } => *index > last || open.contains(call_id.as_str()),
        _ => *index > last,
    });
}

/// Returns whether an item comes from the model and asks for no decision.
fn goes_on(item: &Item) -> bool {
    match item {
        Item::ApprovalRequest => false,
        Item::Reference { id } => asking_run(id).is_none(),
        item => item.is_of_model(),
    }
}

/// Returns the run that has asked for a decision, by the id of its item.
fn asking_run(request_id: &str) -> Option<RunId> {
    let id = parse_item_id(request_id)?;
    (id.kind == ItemKind::ApprovalRequest).then_some(id.run_id)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::http::faces::openai::ids::ItemId;
    use values::message::{ContentPart, Role};

    fn run_id(number: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(number))
    }

    fn request_id(number: u128) -> String {
        let (kind, run_id, index) = (ItemKind::ApprovalRequest, run_id(number), 1);
        ItemId { kind, run_id, index }.to_string()
    }

    fn decision(number: u128) -> Item {
        Item::Decision {
            request_id: request_id(number),
            approves: true,
            reason: None,
        }
    }

    /// Makes items from words in short.
    fn items(words: &[&str]) -> Vec<(usize, Item)> {
        let item = |word: &&str| match *word {
            "request" => Item::ApprovalRequest,
            "reference" => Item::Reference { id: request_id(7) },
            "decision" => decision(7),
            "earlier decision" => decision(6),
            "output" => Item::Output {
                call_id: "c".to_owned(),
                content: Vec::new(),
            },
            word => Item::Message {
                role: if word == "model" { Role::Assistant } else { Role::User },
                content: vec![ContentPart::text(word)],
            },
        };
        words.iter().map(item).enumerate().collect()
    }

    #[test]
    fn the_session_has_all_that_comes_before_the_request() {
        for (words, open, left) in [
            (&["user", "request", "decision"][..], "", &[2][..]),
            (&["decision", "user"], "", &[0, 1]),
            (&["user", "output", "reference", "decision", "user"], "c", &[1, 3, 4]),
            (&["user", "output", "reference", "decision", "user"], "", &[3, 4]),
            (&["reference", "decision", "reference", "decision"], "", &[1, 3]),
            (&["request", "earlier decision", "request", "decision"], "", &[3]),
            (
                &["request", "earlier decision", "model", "request", "decision"],
                "",
                &[4],
            ),
        ] {
            let mut found = items(words);
            assert_eq!(decided_run(&mut found), Some(run_id(7)), "{words:?}");
            after_request(&mut found, &BTreeSet::from([open]));
            let indexes: Vec<usize> = found.iter().map(|(index, _)| *index).collect();
            assert_eq!(indexes, left, "{words:?}");
        }
    }

    #[test]
    fn a_decision_is_history_once_the_model_has_gone_on() {
        let mut found = items(&["user", "request", "decision", "model", "user"]);
        assert_eq!((decided_run(&mut found), found.len()), (None, 4));
    }
}
