//! The input of a run: the caller's messages, with ids and a time.

use crate::run::refusal::Refusal;
use crate::run::request::InputMessage;
use tasks::off_thread::by_size;
use values::clock::Timestamp;
use values::ids::{IdSource, MessageId};
use values::json::{json_length, weight};
use values::message::Message;
use values::session::find_history_fault;
use values::tenant::TenantId;

/// Assigns ids and a time to the caller's messages. Refuses messages that no provider would accept.
/// A request that answers open calls needs no message.
pub(in crate::run) fn input_messages(
    input: Vec<InputMessage>,
    is_optional: bool,
    ids: &dyn IdSource,
    now: Timestamp,
) -> Result<Vec<Message>, Refusal> {
    if input.is_empty() {
        if is_optional {
            return Ok(Vec::new());
        }
        return Err(Refusal::invalid("input", "there is no message"));
    }
    if !is_optional && !input.iter().any(|message| message.section.is_messages()) {
        return Err(Refusal::invalid(
            "input",
            "no message is in the section `messages`, so the model would not be asked anything",
        ));
    }
    let messages: Vec<Message> = input
        .into_iter()
        .map(|message| message.into_message(MessageId::generate(ids), now))
        .collect();
    find_history_fault(&messages).map_or(Ok(messages), |fault| Err(Refusal::History(fault)))
}

/// Returns the size of the messages as JSON in bytes, and the messages. Counts large ones on
/// another thread.
pub(in crate::run) async fn counted(tenant: &TenantId, messages: Vec<Message>) -> (usize, Vec<Message>) {
    let bytes = weight(&messages) as u64;
    let count = move || (messages.iter().map(json_length).sum(), messages);
    by_size(tenant, bytes, count).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasks::off_thread::assert_beside;
    use values::ids::UuidV7Source;
    use values::message::Role;

    #[test]
    fn a_large_input_is_counted_beside_the_async_workers() {
        let id = MessageId::generate(&UuidV7Source);
        let message = Message::text(id, Role::User, "x".repeat(100_000), Timestamp::UNIX_EPOCH);
        let expected = (json_length(&message), vec![message.clone()]);
        let tenant = "inputs".parse().unwrap();
        assert_eq!(assert_beside(counted(&tenant, vec![message])).unwrap(), expected);
    }
}
