//! The lasting settings of a run: those that sessions inherit from the session that they continue.
//!
//! A request can set some of them for its run only. Then the run works with other settings than it
//! leaves to its session.

use std::sync::Arc;

use super::inherited::{response_format_of, session_metadata_of, system_prompt_of};
use crate::run::refusal::Refusal;
use crate::run::request::{LastingSetting, RunRequest};
use agent::definition::AgentDefinition;
use values::json::Object;
use values::model_ref::ResponseFormat;
use values::session::{Bundle, ContextState, OverrideChanges, Overrides, Setting};

/// The lasting settings of a run or a session.
#[derive(Debug, Clone)]
pub(in crate::run) struct LastingSettings {
    /// The settings of the session that override the agent's definition.
    pub(in crate::run) overrides: Option<Arc<Overrides>>,
    /// The template of the system prompt.
    pub(in crate::run) system_prompt: String,
    /// The format of the final response.
    pub(in crate::run) response_format: ResponseFormat,
    /// The key-value pairs.
    pub(in crate::run) metadata: Object,
}

/// The changes that a request makes to the lasting settings of its base.
#[derive(Debug, Clone, Default)]
struct SettingChanges {
    overrides: OverrideChanges,
    response_format: Setting<ResponseFormat>,
    metadata: Setting<Object>,
}

impl LastingSettings {
    /// Returns the settings with which a run works.
    pub(in crate::run) fn of_run(
        base: Option<&Arc<Bundle>>,
        agent: &AgentDefinition,
        request: &RunRequest,
    ) -> Result<Self, Refusal> {
        Self::changed(base, agent, SettingChanges::of(request))
    }

    /// Returns the settings that a run leaves to its session; `None` if they are those with which
    /// it works.
    pub(in crate::run) fn of_session(
        base: Option<&Arc<Bundle>>,
        agent: &AgentDefinition,
        request: &RunRequest,
    ) -> Result<Option<Self>, Refusal> {
        if request.for_this_run.is_empty() {
            return Ok(None);
        }
        let changes = SettingChanges::of(request).without(&request.for_this_run);
        Self::changed(base, agent, changes).map(Some)
    }

    fn changed(base: Option<&Arc<Bundle>>, agent: &AgentDefinition, changes: SettingChanges) -> Result<Self, Refusal> {
        let inherited = base.and_then(|base| base.context.overrides.clone());
        let is_reset = changes.overrides.system_prompt == Setting::Cleared;
        let overrides = if changes.overrides.is_empty() {
            inherited
        } else {
            let inherited = inherited.map(Arc::unwrap_or_clone).unwrap_or_default();
            changes.overrides.onto(inherited).into_shared()
        };
        Ok(Self {
            system_prompt: system_prompt_of(base, agent, overrides.as_deref(), is_reset),
            overrides,
            response_format: response_format_of(base, agent, changes.response_format),
            metadata: session_metadata_of(base, agent, &changes.metadata)?,
        })
    }

    /// Returns the context of a session with these settings in place of those with which its run
    /// worked. What hooks and tools have changed during the run stays.
    pub(in crate::run) fn instead_of(&self, run: &Self, mut context: ContextState) -> ContextState {
        if context.stored.system_prompt == run.system_prompt {
            context.stored.system_prompt.clone_from(&self.system_prompt);
        }
        if context.stored.response_format == run.response_format {
            context.stored.response_format.clone_from(&self.response_format);
        }
        let worked = std::mem::replace(&mut context.metadata, self.metadata.clone());
        let changed = worked
            .into_iter()
            .filter(|(key, value)| run.metadata.get(key) != Some(value));
        context.metadata.extend(changed);
        context.stored.overrides.clone_from(&self.overrides);
        context
    }
}

impl SettingChanges {
    fn of(request: &RunRequest) -> Self {
        Self {
            overrides: request.overrides.clone(),
            response_format: request.response_format.clone(),
            metadata: request.metadata.clone(),
        }
    }

    /// Returns the changes without those of some settings.
    fn without(mut self, settings: &[LastingSetting]) -> Self {
        for setting in settings {
            match setting {
                LastingSetting::SystemPrompt => self.overrides.system_prompt = Setting::Kept,
                LastingSetting::Parameters => self.overrides.parameters = Setting::Kept,
                LastingSetting::Tools => self.overrides.tools = Setting::Kept,
                LastingSetting::ResponseFormat => self.response_format = Setting::Kept,
                LastingSetting::Metadata => self.metadata = Setting::Kept,
            }
        }
        self
    }
}
