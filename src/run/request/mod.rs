//! The request of a caller to start a run, already parsed and validated.

mod allowance;

pub(super) use self::allowance::{Allowance, unpriced};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::run::refusal::Refusal;
use agent::answers::{Answers, ClientTool};
use agent::compilers::Traces;
use agent::definition::DurabilityChoice;
use agent::ports::RunWebhook;
use agent::record::{Creator, RunControl, RunMode, ThreadName};
use agent::state::ExecutionBudget;
use store::queue::IfBusy;
use store::sessions::ConflictPolicy;
use values::clock::Timestamp;
use values::ids::{MessageId, SessionId};
use values::json::{Object, Value, yes};
use values::limits::RunLimits;
use values::message::{ContentPart, Message, MessageTags, ProviderFields, Role, Section};
use values::model_ref::{ModelRef, ResponseFormat};
use values::session::{Hash, OverrideChanges, Setting};
use values::trace_context::TraceContext;

/// A request to run an agent. The queue stores it as JSON, together with the choices made when it
/// was accepted: see `run/plan/accepted.rs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The session to continue; `None` for a new line of sessions. Beside a thread, the session to
    /// which the thread must point.
    pub base_session_id: Option<SessionId>,
    /// Where the run starts, if not at the session to which its thread points. Only with a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_from: Option<ThreadFrom>,
    /// The session whose environment the run begins with; by default the base session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_from: Option<SessionId>,
    /// The agent; by default the base session's, or else the configured default.
    pub agent: Option<String>,
    /// The messages to add; at least one, unless the request answers open calls. The queue stores
    /// them beside the request, with their ids.
    #[serde(skip)]
    pub input: Vec<InputMessage>,
    /// The answers to the open calls of the session.
    #[serde(default, skip_serializing_if = "Answers::is_empty")]
    pub answers: Answers,
    /// How the caller follows the run.
    pub mode: RunMode,
    /// How much of the run outlives its worker; by default the agent's setting. For an accepted
    /// run, the setting that applies.
    pub durability: Option<DurabilityChoice>,
    /// The priority. Among the runs of a tenant, runs of a higher priority are leased first.
    pub priority: i16,
    /// The thread to continue and to move.
    pub thread: Option<ThreadName>,
    /// The effect of another active run on the thread.
    pub if_busy: IfBusy,
    /// The webhook that receives the end of the run; by default the agent's.
    pub webhook: Option<RunWebhook>,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
    /// The model to use instead of the session's or the agent's.
    pub model: Option<ModelRef>,
    /// Changes to the session's overrides of its agent's definition, from this run on.
    #[serde(default, skip_serializing_if = "OverrideChanges::is_empty")]
    pub overrides: OverrideChanges,
    /// Text after the system prompt, in this run only. It is no template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The tools of this run that the caller executes, besides those of the agent; by default those
    /// of the run whose calls the request answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<Vec<ClientTool>>,
    /// The traces of earlier runs that go to the model; by default the agent's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// The settings of the request that sessions which continue this one do not inherit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_this_run: Vec<LastingSetting>,
    /// The limits of the run; absent ones come from the agent.
    pub budget: ExecutionBudget,
    /// Key-value pairs for the run's record, merged into the session's metadata. `Cleared` makes
    /// the session's metadata the agent's again.
    #[serde(default, skip_serializing_if = "Setting::is_retained")]
    pub metadata: Setting<Object>,
    /// Variables to set in the environment; `null` removes one.
    pub variables: BTreeMap<String, Value>,
    /// The format of the final response, for this session and those that continue it.
    #[serde(default, skip_serializing_if = "Setting::is_retained")]
    pub response_format: Setting<ResponseFormat>,
    /// Whether the run publishes its session, as every queued run does. Otherwise its record is
    /// stored without output.
    #[serde(skip, default = "yes")]
    pub publish: bool,
    /// The request as its caller wrote it, which the record of the run returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Arc<Object>>,
    /// The effect of another run that continues the same base.
    pub conflict: ConflictPolicy,
    /// The effect of a disconnection. The worker that executes a queued run has no caller.
    #[serde(skip)]
    pub on_disconnect: OnDisconnect,
    /// How the run ends if nobody reads its events for a while; `None` if it goes on. Then the
    /// disconnection of the caller itself has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_grace: Option<ReaderGrace>,
    /// The limits of the caller's API key, or of its token.
    #[serde(default, skip_serializing_if = "RunLimits::is_empty")]
    pub limits: RunLimits,
    /// The caller; `None` while no API key exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Creator>,
    /// The events that the run emits in addition to its own.
    #[serde(default)]
    pub events: EventOptions,
    /// The HTTP request, for the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RequestOrigin>,
}

/// The HTTP request that has started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestOrigin {
    /// The id of the request.
    pub request_id: String,
    /// Its position in the trace that it belongs to: one of the service or of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

/// A setting of a request that sessions which continue its session inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LastingSetting {
    /// `system_prompt`.
    SystemPrompt,
    /// `parameters`.
    Parameters,
    /// `response_format`.
    ResponseFormat,
    /// `tools`.
    Tools,
    /// `metadata`.
    Metadata,
}

impl LastingSetting {
    /// All lasting settings.
    pub const ALL: [Self; 5] = [
        Self::SystemPrompt,
        Self::Parameters,
        Self::ResponseFormat,
        Self::Tools,
        Self::Metadata,
    ];
}

/// The session from which a run on a thread starts. The run moves the thread from where it points
/// to its own session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadFrom {
    /// The session; `None` to begin a new conversation.
    pub session_id: Option<SessionId>,
}

/// The events that a run emits in addition to its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventOptions {
    /// The events of its subagents, each as a `subagent.event`.
    pub subagents: bool,
}

impl RunRequest {
    /// Makes a request without input, whose other settings are the defaults.
    pub fn new(mode: RunMode) -> Self {
        Self {
            base_session_id: None,
            thread_from: None,
            environment_from: None,
            agent: None,
            input: Vec::new(),
            answers: Answers::default(),
            mode,
            durability: None,
            priority: 0,
            thread: None,
            if_busy: IfBusy::default(),
            webhook: None,
            idempotency: None,
            model: None,
            overrides: OverrideChanges::default(),
            instructions: None,
            client_tools: None,
            traces: None,
            for_this_run: Vec::new(),
            budget: ExecutionBudget::default(),
            metadata: Setting::Kept,
            variables: BTreeMap::new(),
            response_format: Setting::Kept,
            publish: true,
            echo: None,
            conflict: ConflictPolicy::default(),
            on_disconnect: OnDisconnect::default(),
            reader_grace: None,
            limits: RunLimits::default(),
            created_by: None,
            events: EventOptions::default(),
            origin: None,
        }
    }

    /// Returns whether the request asks for a run that outlives this process. Answers do, if the
    /// run publishes a session: they can't be given again before the fate of the calls is known.
    pub(super) fn asks_for_queue(&self) -> bool {
        self.mode == RunMode::Async
            || self.idempotency.is_some()
            || self.thread.is_some()
            || (self.publish && !self.answers.is_empty())
            || self.durability == Some(DurabilityChoice::Step)
    }
}

/// The idempotency key of a request, and the hash of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// The key.
    pub key: String,
    /// The hash.
    pub digest: Hash,
    /// How long the caller may repeat the request at least; `None` for the configured retention. Of
    /// no use once the run is accepted, which claims the key.
    #[serde(skip)]
    pub valid_until: Option<Timestamp>,
}

impl RequestKey {
    /// Refuses the request if another request has used the key.
    pub(super) fn check(&self, known_digest: Hash) -> Result<(), Refusal> {
        if self.digest == known_digest {
            Ok(())
        } else {
            Err(Refusal::OtherRequest { key: self.key.clone() })
        }
    }
}

/// A message of the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct InputMessage {
    /// The role of the speaker.
    pub role: Role,
    /// The speaker's name.
    pub name: Option<String>,
    /// The section of the message store.
    pub section: Section,
    /// The content.
    pub content: Vec<ContentPart>,
    /// The model that made the message, if a part of it is for this model alone.
    pub provider_fields: Option<ProviderFields>,
    /// Key-value pairs of the caller.
    pub metadata: Object,
}

impl InputMessage {
    /// Makes a message of the user.
    pub fn of_user(content: Vec<ContentPart>) -> Self {
        Self {
            role: Role::User,
            name: None,
            section: Section::default(),
            content,
            provider_fields: None,
            metadata: Object::new(),
        }
    }

    /// Returns the message with an id and a time.
    pub fn into_message(mut self, id: MessageId, now: Timestamp) -> Message {
        for part in &mut self.content {
            match part {
                ContentPart::Image(part) => part.source.tidy(),
                ContentPart::Document(part) => part.source.tidy(),
                _ => {}
            }
        }
        Message {
            name: self.name,
            provider_fields: self.provider_fields,
            metadata: self.metadata,
            tags: MessageTags {
                section: self.section,
                ..MessageTags::default()
            },
            ..Message::new(id, self.role, self.content, now)
        }
    }
}

/// How a run ends whose readers do not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderGrace {
    /// How the run ends.
    pub control: RunControl,
    /// How long its events may be without a reader, in seconds.
    pub seconds: u32,
}

impl ReaderGrace {
    /// The longest time, in seconds.
    pub const MAX_SECONDS: u32 = 3_600;

    /// Returns the end of a run whose readers may return within some seconds; `None` if the run
    /// goes on without them.
    pub fn new(on_disconnect: OnDisconnect, seconds: u32) -> Option<Self> {
        let control = on_disconnect.control()?;
        Some(Self { control, seconds })
    }
}

impl OnDisconnect {
    /// Returns how a disconnection ends the run; `None` if the run goes on.
    pub(super) fn control(self) -> Option<RunControl> {
        match self {
            Self::Cancel => Some(RunControl::Cancel),
            Self::Stop => Some(RunControl::Stop),
            Self::Continue => None,
        }
    }
}

/// The effect of a disconnection of the caller on its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// The run is cancelled and publishes nothing.
    #[default]
    Cancel,
    /// The run is stopped and publishes its session so far.
    Stop,
    /// The run continues and commits.
    Continue,
}
