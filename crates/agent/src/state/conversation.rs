//! Adds messages other than those of steps to the conversation: input, traces and summaries, with
//! their tags.

use std::sync::Arc;

use super::agent_state::AgentState;
use values::clock::Timestamp;
use values::message::{Coverage, Message, MessageTags, Section};

impl AgentState {
    /// Adds input to the conversation, tagged with the execution.
    #[must_use]
    pub fn with_input(self, messages: impl IntoIterator<Item = Message>, now: Timestamp) -> Self {
        let tags = MessageTags {
            execution_id: self.execution().map(|execution| execution.execution_id),
            agent_id: Some(self.agent_id()),
            ..MessageTags::default()
        };
        let messages: Vec<_> = messages
            .into_iter()
            .map(|message| {
                let section = message.tags.section.clone();
                Arc::new(message.with_tags(MessageTags {
                    section,
                    ..tags.clone()
                }))
            })
            .collect();
        self.with_messages(messages).updated(now)
    }

    /// Adds messages to the conversation as traces, which later executions don't send.
    #[must_use]
    pub fn with_trace(self, messages: impl IntoIterator<Item = Message>, now: Timestamp) -> Self {
        let execution_id = self.execution().map(|execution| execution.execution_id);
        let agent_id = Some(self.agent_id());
        let tagged = messages.into_iter().map(|message| {
            let tags = MessageTags {
                execution_id,
                agent_id,
                is_trace: true,
                ..message.tags.clone()
            };
            Arc::new(message.with_tags(tags))
        });
        self.with_messages(tagged).updated(now)
    }

    /// Adds a summary that covers earlier messages. These stay in the history, but compilers don't
    /// send them.
    #[must_use]
    pub fn with_summary(self, message: Message, covers: Coverage, now: Timestamp) -> Self {
        let tags = MessageTags {
            execution_id: self.execution().map(|execution| execution.execution_id),
            agent_id: Some(self.agent_id()),
            section: Section::new(Section::SUMMARY),
            covers: Some(covers),
            ..MessageTags::default()
        };
        self.with_messages([Arc::new(message.with_tags(tags))]).updated(now)
    }
}
