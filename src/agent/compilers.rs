//! Compilers choose which messages of the history go to the model. They read the store and never rewrite it.

use std::fmt;
use std::sync::Arc;

use super::state::{AgentState, ExecutionState, Messages};
use crate::message::{Message, Role};

/// Chooses the messages of a request.
pub trait Compiler: Send + Sync + fmt::Debug {
    /// Returns the chosen messages in their order. Calls and their results stay together.
    fn compile(&self, state: &AgentState) -> Messages;
}

/// Sends the conversation, and of its traces those of the current execution only.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConversationWithCurrentTrace;

impl Compiler for ConversationWithCurrentTrace {
    fn compile(&self, state: &AgentState) -> Messages {
        let current = state
            .execution()
            .map(|execution: &ExecutionState| execution.execution_id);
        let chosen = state
            .messages()
            .filter(|message| !message.tags.is_trace || message.tags.execution_id == current);
        paired(&chosen.map(Arc::clone).collect::<Vec<_>>()).into()
    }
}

/// Leaves out messages with calls that lack a result, and results without their call: no provider accepts one without the other.
/// Stored histories pair them; this keeps a session usable whose history does not.
fn paired(chosen: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut kept = Vec::with_capacity(chosen.len());
    let mut rest = chosen;
    while let Some((message, after)) = rest.split_first() {
        let answers = after.iter().take_while(|next| next.role == Role::Tool).count();
        let (answers, after) = after.split_at(answers);
        rest = after;
        let mut asked: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        let results = answers.iter().flat_map(|answer| answer.tool_results());
        let mut answered: Vec<&str> = results.map(|result| result.call_id.as_str()).collect();
        asked.sort_unstable();
        answered.sort_unstable();
        // A tool message stands here only if the list begins with it.
        if message.role != Role::Tool && (asked.is_empty() || asked == answered) {
            kept.push(Arc::clone(message));
        }
        if !asked.is_empty() && asked == answered {
            kept.extend_from_slice(answers);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::state::{AgentContext, MessageStore};
    use crate::clock::Timestamp;
    use crate::ids::{AgentId, ExecutionId, MessageId, UuidV7Source};
    use crate::message::{ContentPart, MessageTags, ToolCall, ToolResult};

    fn message(role: Role, content: Vec<ContentPart>, is_trace: bool) -> Arc<Message> {
        let id = MessageId::generate(&UuidV7Source);
        let tags = MessageTags {
            is_trace,
            ..MessageTags::default()
        };
        Arc::new(Message::new(id, role, content, Timestamp::UNIX_EPOCH).with_tags(tags))
    }

    fn asks(id: &str, is_trace: bool) -> Arc<Message> {
        let call = ContentPart::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "t".to_owned(),
            arguments: "{}".to_owned(),
            signature: None,
        });
        message(Role::Assistant, vec![call], is_trace)
    }

    fn answers(id: &str, is_trace: bool) -> Arc<Message> {
        let result = ContentPart::ToolResult(ToolResult {
            call_id: id.to_owned(),
            name: "t".to_owned(),
            content: Vec::new(),
            is_error: false,
        });
        message(Role::Tool, vec![result], is_trace)
    }

    #[test]
    fn calls_and_results_are_chosen_together() {
        let says = message(Role::User, vec![ContentPart::text("x")], false);
        let (ask, answer) = (asks("whole", false), answers("whole", false));
        let history = [
            answers("stray", false),
            Arc::clone(&says),
            asks("open", false),
            asks("half", false),
            answers("half", true),
            Arc::clone(&says),
            asks("other", true),
            answers("other", false),
            Arc::clone(&ask),
            Arc::clone(&answer),
        ];
        let now = Timestamp::UNIX_EPOCH;
        let context = AgentContext {
            store: MessageStore::default().with_messages(history),
            ..AgentContext::default()
        };
        let state = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, u64::MAX, context);
        let state = state.start_execution(ExecutionId::generate(&UuidV7Source), now);
        assert_eq!(state.execution_count(), u64::MAX);
        let chosen = ConversationWithCurrentTrace.compile(&state);
        assert_eq!(*chosen, [Arc::clone(&says), says, ask, answer]);
    }
}
