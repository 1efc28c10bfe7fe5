//! The messages of a session as a page has them.

use super::agent_events::AgentEvents;
use super::fold::fold;
use super::message::Message;
use crate::http::faces::chat::{EchoMessage, ReadPassage, Said, conversation_of};

/// Returns the messages of a session, oldest first, from its passages and their runs. `question` is
/// what has no session yet.
pub(in crate::http) fn messages_of(passages: &[ReadPassage], question: Vec<EchoMessage>) -> Vec<Message> {
    let mut messages = Vec::new();
    for said in conversation_of(passages)
        .into_iter()
        .chain(question.into_iter().map(Said::User))
    {
        match said {
            Said::User(message) => messages.push(Message::of_user(message)),
            Said::Agent { id, chunks, .. } => {
                let mut agent = AgentEvents::new(id, None);
                for chunk in chunks {
                    agent.add(chunk);
                }
                for event in agent.take() {
                    fold(&mut messages, &event);
                }
            }
        }
    }
    messages
}
