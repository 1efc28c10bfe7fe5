//! A session as a conversation, from its passages and their runs.

use std::sync::Arc;

use super::chunk::{Chunk, RunMetadata};
use super::echo::EchoMessage;
use super::writer::{ChunkWriter, metadata_of};
use crate::http::faces::turn::Turn;
use crate::run::read::{Passage, PassageRuns, is_input};
use values::message::{Message, Role};

/// A passage, with the runs that have made it.
pub(in crate::http) type ReadPassage = (Arc<Passage>, Option<PassageRuns>);

/// Something that somebody has said.
#[derive(Debug)]
pub(in crate::http::faces) enum Said {
    /// A message of the user.
    User(EchoMessage),
    /// A part of a turn of the agent.
    Agent {
        /// The run or, if none has made it, its first message.
        id: String,
        /// Whether it goes on with the turn before.
        continues: bool,
        /// What it has said and done.
        chunks: Vec<Chunk>,
        /// The run that has ended with it.
        run: Option<RunMetadata>,
    },
}

/// Returns what was said in a session, oldest first.
pub(in crate::http::faces) fn conversation_of(passages: &[ReadPassage]) -> Vec<Said> {
    let mut said = Vec::new();
    for (passage, runs) in passages {
        match runs {
            Some(runs) => add_runs(&mut said, runs),
            None => add_plain(&mut said, &passage.messages),
        }
    }
    said
}

fn add_runs(said: &mut Vec<Said>, PassageRuns { run, before }: &PassageRuns) {
    let summary = &run.record.summary;
    if let Some(answered) = &run.answered {
        let first = answered.run_id.unwrap_or(summary.run_id).to_string();
        said.push(part(first, true, None, |writer| match before {
            Some(before) => {
                writer.write_steps(before);
                writer.write_answers(answered);
            }
            None => writer.write_answered_step(answered),
        }));
    }
    said.extend(run.input.iter().filter_map(of_input));
    let continues = run.input.is_empty();
    let end = Some(metadata_of(summary));
    let id = summary.run_id.to_string();
    said.push(part(id, continues, end, |writer| writer.write_steps(run)));
}

/// Adds messages that no stored run has made.
fn add_plain(said: &mut Vec<Said>, messages: &[Arc<Message>]) {
    for messages in messages.chunk_by(|one, next| !is_of_user(one) && !is_of_user(next)) {
        match messages {
            [message] if is_of_user(message) => said.push(Said::User(EchoMessage::of_stored(message))),
            messages => said.push(of_agent(messages, true)),
        }
    }
}

/// Returns a message of a request. A page shows no instructions.
fn of_input(message: &Arc<Message>) -> Option<Said> {
    match message.role {
        Role::User => Some(Said::User(EchoMessage::of_stored(message))),
        Role::Assistant => Some(of_agent(std::slice::from_ref(message), false)),
        Role::System | Role::Tool => None,
    }
}

fn of_agent(messages: &[Arc<Message>], continues: bool) -> Said {
    let id = messages.first().map(|first| first.id.to_string());
    let turn = Turn::of_messages(messages);
    part(id.unwrap_or_default(), continues, None, |writer| {
        writer.write_turn(&turn);
    })
}

fn part(id: String, continues: bool, run: Option<RunMetadata>, write: impl FnOnce(&mut ChunkWriter)) -> Said {
    let mut writer = ChunkWriter::with_answers();
    write(&mut writer);
    Said::Agent {
        id,
        continues,
        chunks: writer.take(),
        run,
    }
}

fn is_of_user(message: &Message) -> bool {
    message.role == Role::User && is_input(&message.tags)
}
