//! The body of `POST /v1/runs`, checked for form. The run checks later whether the named things
//! exist.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answer_body::{AnswerBody, into_answers};
use super::preference::Preference;
use crate::http::checks::{check_agent_name, check_budget, check_metadata, check_reserved, check_variables};
use crate::http::codes::ProblemCode;
use crate::http::input::{RunInput, decode_input};
use crate::http::limits::HttpLimits;
use crate::http::parameters::parse_id;
use crate::http::problem::Problem;
use crate::run::{
    EventOptions, InputMessage, LastingSetting, OnDisconnect, ReaderGrace, RequestKey, RunRequest, ThreadFrom,
};
use agent::answers::{Answers, ClientTool};
use agent::compilers::Traces;
use agent::definition::DurabilityChoice;
use agent::ports::RunWebhook;
use agent::record::{RunMode, ThreadName};
use agent::state::ExecutionBudget;
use store::queue::IfBusy;
use store::sessions::ConflictPolicy;
use values::ids::SessionId;
use values::json::{Object, Value};
use values::limits::RunLimits;
use values::model_parameters::ModelParameters;
use values::model_ref::{ModelRef, ResponseFormat};
use values::session::{OverrideChanges, Setting};

/// The highest priority. The lowest one is its negative.
const MAX_PRIORITY: i16 = 100;

/// A run to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct CreateRun {
    /// The session to continue; without it a new conversation begins.
    #[schema(format = Uuid)]
    base_session_id: Option<String>,
    /// The session whose files, variables and resources the run begins with; by default the base
    /// session.
    #[schema(format = Uuid)]
    environment_from: Option<String>,
    /// The agent; by default the agent of the base session, or of the previous run on the thread,
    /// else `runs.default_agent`.
    #[schema(pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$")]
    agent: Option<String>,
    /// The messages to add to the conversation. Only a request with answers may leave them out.
    #[schema(value_type = RunInput)]
    input: Option<Box<RawValue>>,
    /// The answers to all open calls of the base session, if that session waits for answers.
    #[schema(max_items = 1024)]
    answers: Option<Vec<AnswerBody>>,
    /// Whether open calls without an answer are denied; by default they are not.
    deny_open: Option<bool>,
    /// `sync` returns the run at its end, `stream` its events, `async` the queued run at once; by
    /// default `sync`.
    mode: Option<RunMode>,
    /// The work that survives the loss of a worker; by default the agent's choice.
    durability: Option<DurabilityChoice>,
    /// -100 to 100; by default 0. Runs of a higher priority leave the queue before other runs of
    /// the same tenant.
    #[schema(minimum = -100, maximum = 100)]
    priority: Option<i64>,
    /// The thread to continue and to move, instead of a base session. A thread that does not exist
    /// is created.
    thread: Option<ThreadName>,
    /// Where a run on a thread starts, if not at the session to which the thread points. The run
    /// moves the thread to its own session from wherever it points.
    thread_from: Option<ThreadFromBody>,
    /// The policy when the thread has another active run; by default `reject`.
    if_busy: Option<IfBusy>,
    /// Where to report the end of the run; by default the agent's webhook.
    webhook: Option<RunWebhook>,
    /// The model of this run only; by default the session's, else the agent's.
    model: Option<ModelRef>,
    /// How the model generates, for this session and its descendants. An absent parameter has the
    /// agent's value; null makes all of them the agent's again. There are no `extra` fields.
    #[serde(default)]
    #[schema(value_type = Option<ModelParameters>)]
    parameters: Setting<ModelParameters>,
    /// Instructions instead of the agent's, for this session and its descendants: a template like
    /// the agent's. Null makes them the agent's again.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    system_prompt: Setting<String>,
    /// The tools of the agent that the model may call, for this session and its descendants. Null
    /// allows all of them again.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    tools: Setting<Vec<String>>,
    /// Text after the instructions of the agent or the session, in this run only. It is no
    /// template.
    #[schema(max_length = 1_048_576)]
    instructions: Option<String>,
    /// Tools that the caller executes, in this run only, besides the agent's. A call of one ends
    /// the run with the status `waiting`. A run that answers such calls has these tools, too,
    /// unless its request names others.
    #[schema(max_items = 128)]
    client_tools: Option<Vec<ClientTool>>,
    /// The traces of earlier runs that go to the model, in this run only; by default the agent's
    /// choice.
    traces: Option<Traces>,
    /// The settings of this request that are for this run only: sessions that continue this one
    /// inherit those of the base session instead.
    #[schema(max_items = 5)]
    for_this_run: Option<Vec<LastingSetting>>,
    /// Limits; those that are absent come from the agent.
    budget: Option<ExecutionBudget>,
    /// Key-value pairs of the run, merged into those of the session, where null removes a key: at
    /// most 64 keys and 16 KiB. Null makes those of the session the agent's again.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Setting<Object>,
    /// Variables to set in the environment: at most 1024 and 256 KiB; null removes one.
    variables: Option<BTreeMap<String, Value>>,
    /// The shape of the final output, for this session and those that continue it; by default the
    /// agent's, else the session's. Null makes it the agent's again.
    #[serde(default)]
    #[schema(value_type = Option<ResponseFormat>)]
    response_format: Setting<ResponseFormat>,
    /// Whether the run publishes a session, as by default. Otherwise the record that stays has no
    /// output, and no run can continue it. Only the response to this request has the output, and
    /// the events of the run, for as long as events are retained.
    publish: Option<bool>,
    /// The policy when another run continues the same base session; by default `fork`. Open calls
    /// are answered once, unless the request asks for a fork.
    conflict: Option<ConflictPolicy>,
    /// The effect of a lost connection: `cancel`, `stop` or `continue`. By default a run
    /// with an idempotency key continues, a stream on a thread stops, and any other run is
    /// cancelled.
    on_disconnect: Option<OnDisconnect>,
    /// How long the events of a stream may be without any reader, on any replica, before
    /// `on_disconnect` takes effect; at most 3600. By default it takes effect when the caller
    /// leaves.
    #[schema(minimum = 1, maximum = 3600)]
    disconnect_grace_seconds: Option<u32>,
    /// The events that the run emits besides its own: events of subagents, or none by default.
    events: Option<EventOptions>,
    /// The session of the waiting run that the request answers, which its thread must point to.
    #[serde(skip)]
    answered_session: Option<SessionId>,
}

/// The session from which a run on a thread starts.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ThreadFrom)]
#[serde(deny_unknown_fields)]
struct ThreadFromBody {
    /// The session to continue; null begins a new conversation.
    // Without it, an empty object would begin a new conversation.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required = true, format = Uuid)]
    session_id: Option<String>,
}

impl CreateRun {
    /// Checks the values, and makes a request from them.
    pub(super) fn into_request(
        self,
        limits: &HttpLimits,
        preference: Preference,
        key: Option<RequestKey>,
        key_limits: RunLimits,
    ) -> Result<RunRequest, Problem> {
        self.check_thread()?;
        let priority = self.checked_priority()?;
        let base = self
            .base_session_id
            .map(|text| parse_id("/base_session_id", &text))
            .transpose()?;
        let environment_from = self
            .environment_from
            .map(|text| parse_id("/environment_from", &text))
            .transpose()?;
        let thread_from = self.thread_from.map(ThreadFromBody::into_start).transpose()?;
        if let Some(name) = &self.agent {
            check_agent_name(name, "/agent")?;
        }
        let budget = self.budget.unwrap_or_default();
        check_budget(&budget, "/budget")?;
        if self.answers.as_ref().is_some_and(Vec::is_empty) && self.input.is_none() && self.deny_open != Some(true) {
            let words = "empty: answer each open call, or send `\"deny_open\": true` to deny them";
            return Err(Problem::invalid_field("/answers", words));
        }
        let mut answers = into_answers(self.answers.unwrap_or_default(), self.deny_open.unwrap_or_default())?;
        answers.is_fork = self.conflict == Some(ConflictPolicy::Fork);
        let input = decode_run_input(self.input.as_deref(), &answers, limits)?;
        if let Setting::Set(metadata) = &self.metadata {
            check_metadata(metadata, "/metadata")?;
            check_reserved(metadata, "/metadata")?;
        }
        let variables = self.variables.unwrap_or_default();
        check_variables(&variables, "/variables")?;
        let mode = preference.mode(self.mode.unwrap_or(RunMode::Sync));
        let on_disconnect =
            (self.on_disconnect).unwrap_or_else(|| default_on_disconnect(mode, self.thread.as_ref(), key.as_ref()));
        let reader_grace = read_grace(self.disconnect_grace_seconds, mode, on_disconnect)?;
        Ok(RunRequest {
            base_session_id: base.or(self.answered_session),
            thread_from,
            environment_from,
            agent: self.agent,
            input,
            answers,
            mode,
            model: self.model,
            overrides: OverrideChanges {
                parameters: self.parameters,
                system_prompt: self.system_prompt,
                tools: self.tools,
            },
            instructions: self.instructions,
            client_tools: self.client_tools,
            traces: self.traces,
            for_this_run: self.for_this_run.unwrap_or_default(),
            budget,
            metadata: self.metadata,
            variables,
            response_format: self.response_format,
            publish: self.publish.unwrap_or(true),
            echo: None,
            events: self.events.unwrap_or_default(),
            durability: self.durability,
            priority,
            thread: self.thread,
            if_busy: self.if_busy.unwrap_or_default(),
            webhook: self.webhook,
            conflict: self.conflict.unwrap_or_default(),
            on_disconnect,
            reader_grace,
            idempotency: key,
            limits: key_limits,
            created_by: None,
            origin: None,
        })
    }

    /// Returns the request for a run that answers the open calls of a session.
    pub(super) fn answering(self, session_id: SessionId, thread: Option<ThreadName>) -> Result<Self, Problem> {
        for (field, is_set) in [
            ("/base_session_id", self.base_session_id.is_some()),
            ("/thread", self.thread.is_some()),
            ("/thread_from", self.thread_from.is_some()),
        ] {
            if is_set {
                let message = "the run of the address determines it: leave it out";
                return Err(Problem::invalid_field(field, message));
            }
        }
        Ok(Self {
            answered_session: Some(session_id),
            thread,
            ..self
        })
    }

    fn check_thread(&self) -> Result<(), Problem> {
        if self.thread.is_some() && self.base_session_id.is_some() {
            return Err(Problem::invalid_field(
                "/thread",
                "the thread determines the base session: leave `base_session_id` out, or name another start with \
                 `thread_from`",
            ));
        }
        if self.thread.is_none() && self.thread_from.is_some() {
            return Err(Problem::invalid_field(
                "/thread_from",
                "only a run on a `thread` can start elsewhere than its thread: use `base_session_id`",
            ));
        }
        if self.thread.is_none() && self.if_busy.is_some() {
            return Err(Problem::invalid_field(
                "/if_busy",
                "only a run on a `thread` can meet another one there",
            ));
        }
        Ok(())
    }

    fn checked_priority(&self) -> Result<i16, Problem> {
        let priority = i16::try_from(self.priority.unwrap_or_default()).ok();
        let allowed = priority.filter(|priority| (-MAX_PRIORITY..=MAX_PRIORITY).contains(priority));
        allowed.ok_or_else(|| {
            Problem::invalid_field("/priority", format!("not between -{MAX_PRIORITY} and {MAX_PRIORITY}"))
        })
    }
}

impl ThreadFromBody {
    fn into_start(self) -> Result<ThreadFrom, Problem> {
        let session_id = self.session_id.map(|text| parse_id("/thread_from/session_id", &text));
        Ok(ThreadFrom {
            session_id: session_id.transpose()?,
        })
    }
}

/// Decodes the input, which only a request with answers may leave out.
fn decode_run_input(
    input: Option<&RawValue>,
    answers: &Answers,
    limits: &HttpLimits,
) -> Result<Vec<InputMessage>, Problem> {
    match input {
        Some(input) => decode_input(input, limits.max_input_messages),
        None if answers.is_empty() => Err(Problem::of_field(
            ProblemCode::MissingField,
            "/input",
            "missing field `input`: a text, or a list of messages. A request that answers open calls may have \
             `answers` instead",
        )),
        None => Ok(Vec::new()),
    }
}

/// Returns the end of a stream whose readers may return within some seconds.
fn read_grace(
    seconds: Option<u32>,
    mode: RunMode,
    on_disconnect: OnDisconnect,
) -> Result<Option<ReaderGrace>, Problem> {
    let pointer = "/disconnect_grace_seconds";
    match seconds {
        None => Ok(None),
        Some(_) if mode != RunMode::Stream => {
            Err(Problem::invalid_field(pointer, "only the mode `stream` has readers"))
        }
        Some(seconds @ 1..=ReaderGrace::MAX_SECONDS) => Ok(ReaderGrace::new(on_disconnect, seconds)),
        Some(_) => {
            let words = format!("not between 1 and {}", ReaderGrace::MAX_SECONDS);
            Err(Problem::invalid_field(pointer, words))
        }
    }
}

/// Returns the default for a lost connection. A caller with an idempotency key can repeat the
/// request, so the run continues. A caller that streams on a thread has read part of the
/// completion, so the run stops and publishes this part.
fn default_on_disconnect(mode: RunMode, thread: Option<&ThreadName>, key: Option<&RequestKey>) -> OnDisconnect {
    match (key, mode, thread) {
        (Some(_), ..) => OnDisconnect::Continue,
        (None, RunMode::Stream, Some(_)) => OnDisconnect::Stop,
        (None, ..) => OnDisconnect::default(),
    }
}
