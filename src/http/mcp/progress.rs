//! Progress notifications from the events of a run.

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;

use crate::run::read::{Followed, Follower};
use agent::AgentEvent;
use agent::record::RunEventPayload;

/// Sends a notification for each step and each call of the run, until the run or the client ends.
pub(super) async fn report(mut events: Follower, peer: Peer<RoleServer>, token: ProgressToken) {
    let mut progress = 0_u32;
    while let Some(Followed::Event(event)) = events.next().await {
        let Some(words) = words_of(&event.payload) else {
            continue;
        };
        progress += 1;
        let notification = ProgressNotificationParam::new(token.clone(), f64::from(progress)).with_message(words);
        if peer.notify_progress(notification).await.is_err() {
            return;
        }
    }
}

/// Returns an event as progress for a client; `None` for events that are no progress.
fn words_of(event: &RunEventPayload) -> Option<String> {
    match event {
        RunEventPayload::Resumed { attempts, .. } => Some(format!("another process continues: attempt {attempts}")),
        RunEventPayload::Agent(event) => match event {
            AgentEvent::StepStarted { step_number, .. } => Some(format!("step {step_number}")),
            AgentEvent::ToolCallStarted { name, .. } => Some(format!("calls {name}")),
            AgentEvent::ToolCallCompleted { name, is_error, .. } => {
                let end = if *is_error { "failed" } else { "has ended" };
                Some(format!("{name} {end}"))
            }
            AgentEvent::SubagentStarted { agent, .. } => Some(format!("asks the agent {agent}")),
            _ => None,
        },
        _ => None,
    }
}
