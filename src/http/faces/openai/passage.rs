//! The items of a session, passage by passage.
//!
//! The items of a passage are those of the input and of the output of its run, with the same ids.
//! Messages that no stored run has made are named by their own ids.

use std::collections::HashSet;

use super::echo::Echo;
use super::ids::ItemId;
use super::response::{ResponseSettings, output_items};
use super::stored_items::{input_items, items_of};
use crate::run::read::{Passage, PassageRuns, passages_of};
use values::ids::{RunId, StepId};
use values::json::Value;
use values::session::Bundle;

/// The steps and the messages of a session, as the ids of items name them.
#[derive(Debug, Default)]
pub(in crate::http) struct ItemOwners {
    /// The run that has left the last step open, which the history lacks.
    open: Option<RunId>,
    /// Those with their run.
    of_runs: HashSet<(RunId, u64)>,
    /// The first steps of passages. An earlier run may have left them open.
    first_steps: HashSet<u64>,
}

impl ItemOwners {
    /// Reads a session with all its messages.
    pub(in crate::http) fn of(bundle: &Bundle) -> Self {
        let mut owners = Self {
            open: bundle.waiting().and_then(|waiting| waiting.run_id),
            ..Self::default()
        };
        for passage in passages_of(bundle) {
            let first_step = passage.first_step().map(StepId::as_uuid);
            owners.first_steps.extend(first_step.map(ItemId::owner_of));
            for message in &passage.messages {
                let own_id = message.id.as_uuid();
                let own_run = RunId::from_uuid(own_id);
                owners.of_runs.insert((own_run, ItemId::owner_of(own_id)));
                if let Some(run_id) = passage.run_id {
                    let step_id = message.tags.step_id.map(StepId::as_uuid);
                    let ids = step_id.into_iter().chain([own_id]);
                    owners.of_runs.extend(ids.map(|id| (run_id, ItemId::owner_of(id))));
                }
            }
        }
        owners
    }

    /// Returns whether the session has the message or the step of an item.
    pub(in crate::http) fn have(&self, id: ItemId) -> bool {
        self.open == Some(id.run_id)
            || self.of_runs.contains(&(id.run_id, id.owner()))
            || self.first_steps.contains(&id.owner())
    }
}

impl Passage {
    fn first_step(&self) -> Option<StepId> {
        self.messages.first().and_then(|message| message.tags.step_id)
    }

    /// Returns whether an item may be in the passage, by its id alone.
    pub(in crate::http) fn may_have(&self, id: ItemId) -> bool {
        let first_step = self.first_step();
        let own_message = || {
            let mut ids = self.messages.iter().map(|message| message.id.as_uuid());
            ids.any(|message_id| message_id == id.run_id.as_uuid())
        };
        self.run_id == Some(id.run_id)
            || first_step.is_some_and(|step_id| id.number_in(step_id.as_uuid()).is_some())
            || own_message()
    }

    /// Makes the items, oldest first. Without the runs, the messages stand for themselves.
    pub(in crate::http) fn items(&self, runs: Option<&PassageRuns>, settings: &ResponseSettings) -> Vec<Value> {
        let Some(PassageRuns { run, before }) = runs else {
            return items_of(self.messages.iter().map(AsRef::as_ref), None);
        };
        let mut items = Vec::new();
        if let Some(before) = before {
            items.extend(output_items(before, settings));
        }
        items.extend(input_items(run));
        items.extend(output_items(run, settings));
        items
    }
}

impl PassageRuns {
    /// Returns whether a run of the passage has JSON as its output.
    pub(super) fn has_json(&self, run_id: RunId) -> bool {
        let mut runs = self.before.iter().chain([&self.run]);
        let run = runs.find(|run| run.record.summary.run_id == run_id);
        run.is_some_and(|run| Echo::of_stored(run.record.echo.as_deref()).is_json())
    }
}
