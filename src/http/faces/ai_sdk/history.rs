//! The messages of a session as a page has them.

use super::message::UiMessage;
use crate::http::faces::chat::{ReadPassage, Said, conversation_of};

/// Returns the messages of a session, oldest first, from its passages and their runs.
pub(in crate::http) fn messages_of(passages: &[ReadPassage]) -> Vec<UiMessage> {
    let has_parts = |turn: &UiMessage| !turn.is_empty();
    let mut messages = Vec::new();
    // The turn of the agent that later runs may go on with.
    let mut turn: Option<UiMessage> = None;
    for said in conversation_of(passages) {
        let is_new = !matches!(said, Said::Agent { continues: true, .. });
        messages.extend(turn.take_if(|_| is_new).filter(has_parts));
        match said {
            Said::User(message) => messages.push(UiMessage::of_user(message)),
            Said::Agent { id, chunks, run, .. } => {
                let turn = turn.get_or_insert_with(|| UiMessage::of_agent(id));
                for chunk in chunks {
                    turn.add(chunk);
                }
                turn.set_run(run);
            }
        }
    }
    messages.extend(turn.filter(has_parts));
    messages
}
