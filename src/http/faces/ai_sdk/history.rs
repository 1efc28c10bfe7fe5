//! The messages of a session as a page has them.

use std::sync::Arc;

use super::message::UiMessage;
use super::writer::{ChunkWriter, metadata_of};
use crate::http::faces::turn::Turn;
use crate::run::read::{Passage, PassageRuns, is_input};
use values::message::{Message, Role};

/// Returns the messages of a session, oldest first, from its passages and their runs.
pub(in crate::http) fn messages_of(passages: &[(Arc<Passage>, Option<PassageRuns>)]) -> Vec<UiMessage> {
    let mut history = History::default();
    for (passage, runs) in passages {
        match runs {
            Some(runs) => history.add_runs(runs),
            None => history.add_plain(&passage.messages),
        }
    }
    history.end_turn();
    history.messages
}

#[derive(Default)]
struct History {
    messages: Vec<UiMessage>,
    /// The turn of the agent that later runs may go on with.
    turn: Option<UiMessage>,
}

impl History {
    fn add_runs(&mut self, PassageRuns { run, before }: &PassageRuns) {
        let summary = &run.record.summary;
        if let Some(answered) = &run.answered {
            let first = answered.run_id.unwrap_or(summary.run_id).to_string();
            self.write(first, |writer| match before {
                Some(before) => {
                    writer.write_steps(before);
                    writer.write_answers(answered);
                }
                None => writer.write_answered_step(answered),
            });
        }
        if !run.input.is_empty() {
            self.end_turn();
            self.messages
                .extend(run.input.iter().filter_map(|message| of_input(message)));
        }
        let turn = self.write(summary.run_id.to_string(), |writer| writer.write_steps(run));
        turn.set_run(metadata_of(summary));
    }

    /// Adds what a writer writes to the turn, which begins if there is none.
    fn write(&mut self, id: String, write: impl FnOnce(&mut ChunkWriter)) -> &mut UiMessage {
        let mut writer = ChunkWriter::after(&[]);
        write(&mut writer);
        let turn = self.turn.get_or_insert_with(|| UiMessage::of_agent(id));
        for chunk in writer.take() {
            turn.add(chunk);
        }
        turn
    }

    /// Adds messages that no stored run has made.
    fn add_plain(&mut self, messages: &[Arc<Message>]) {
        for part in messages.chunk_by(|one, next| !is_of_user(one) && !is_of_user(next)) {
            match part {
                [message] if is_of_user(message) => {
                    self.end_turn();
                    self.messages.push(UiMessage::of_user(message));
                }
                [first, ..] => {
                    let turn = Turn::of_messages(part);
                    self.write(first.id.to_string(), |writer| writer.write_turn(&turn));
                }
                [] => (),
            }
        }
    }

    fn end_turn(&mut self) {
        self.messages.extend(self.turn.take().filter(|turn| !turn.is_empty()));
    }
}

/// Returns a message of a request. A page shows no instructions.
fn of_input(message: &Message) -> Option<UiMessage> {
    match message.role {
        Role::User => Some(UiMessage::of_user(message)),
        Role::Assistant => {
            let mut history = History::default();
            history.add_plain(&[Arc::new(message.clone())]);
            history.turn
        }
        Role::System | Role::Tool => None,
    }
}

fn is_of_user(message: &Message) -> bool {
    message.role == Role::User && is_input(&message.tags)
}
