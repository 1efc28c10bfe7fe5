//! The spans of a run, from its events. Does no IO and reads no clock.
//!
//! The ids of spans are derived from those of the run. So the spans that several workers make fit
//! together: a tool call that the second worker executes is below the agent that the first one
//! began.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;
use opentelemetry::trace::{SpanId, SpanKind, TraceId};
use opentelemetry::{Array, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanLinks};

use super::genai;
use super::span::{SpanDraft, derived, ids, linked};
use agent::ports::ProviderInfo;
use agent::record::{RunEventPayload, RunSummary};
use agent::state::{ExecutionStatus, StopReason, ToolVerdict};
use agent::{AgentEvent, TracedWork};
use values::clock::Timestamp;
use values::ids::{AgentId, ModelRequestId, RunId};
use values::tenant::TenantId;
use values::trace_context::TraceContext;
use values::usage::Usage;

/// What spans say of the providers of models.
#[derive(Debug, Default)]
pub struct ProviderSpans(BTreeMap<String, Provider>);

#[derive(Debug)]
struct Provider {
    name: &'static str,
    server: Option<(String, u16)>,
}

/// The conversation that a run belongs to: its thread, or else the first session of its tree.
#[derive(Debug, Clone)]
pub struct Conversation(pub String);

/// The spans of one run.
#[derive(Debug)]
pub struct RunSpans {
    trace_id: TraceId,
    parent: Option<SpanId>,
    run_id: RunId,
    /// The span of the run's own agent.
    own_agent: SpanId,
    tenant: TenantId,
    conversation: Option<StringValue>,
    /// To the runs whose calls the run answers.
    links: SpanLinks,
    providers: Arc<ProviderSpans>,
    /// The requests to models that have not ended.
    asked: HashMap<ModelRequestId, Asked>,
    /// The subagents that have not ended.
    subagents: HashMap<AgentId, Timestamp>,
}

/// A request to a model that has not ended.
#[derive(Debug)]
struct Asked {
    agent: SpanId,
    at: Timestamp,
    max_tokens: Option<u64>,
    first_chunk: Option<Timestamp>,
}

/// The execution that an event belongs to: the run's own agent, or a subagent.
#[derive(Debug, Clone, Copy)]
struct Scope {
    agent: SpanId,
    agent_id: Option<AgentId>,
}

impl ProviderSpans {
    /// Makes the names from the configured providers.
    pub fn new(providers: impl IntoIterator<Item = ProviderInfo>) -> Self {
        let named = providers.into_iter().map(|provider| {
            let name = genai::provider_name(provider.kind);
            let server = provider.server;
            (provider.name, Provider { name, server })
        });
        Self(named.collect())
    }
}

impl RunSpans {
    /// Begins the spans of a run. They are below the span of its request; without one, the run has
    /// a trace of its own.
    pub fn new(
        run: &RunSummary,
        tenant: &TenantId,
        request: Option<&TraceContext>,
        providers: Arc<ProviderSpans>,
    ) -> Self {
        let (trace_id, parent) = match request {
            Some(context) => {
                let (trace_id, span_id) = ids(context);
                (trace_id, Some(span_id))
            }
            None => (TraceId::from_bytes(*run.run_id.as_uuid().as_bytes()), None),
        };
        Self {
            trace_id,
            parent,
            run_id: run.run_id,
            own_agent: derived(&[run.run_id.as_uuid().as_bytes(), b"agent"]),
            tenant: tenant.clone(),
            conversation: run.thread.as_ref().map(|thread| thread.to_string().into()),
            links: SpanLinks::default(),
            providers,
            asked: HashMap::new(),
            subagents: HashMap::new(),
        }
    }

    /// Sets the conversation of a run without a thread.
    pub fn set_conversation(&mut self, conversation: Conversation) {
        self.conversation.get_or_insert(conversation.0.into());
    }

    /// Links the run to the one whose calls it answers.
    pub fn link(&mut self, answered: &TraceContext) {
        self.links.links.push(linked(answered));
    }

    /// Returns the span of some work of the run's own agent, or of a subagent. It may not have
    /// begun.
    pub fn span_of(&self, agent_id: Option<AgentId>, work: TracedWork<'_>) -> Option<TraceContext> {
        let scope = agent_id.map_or_else(|| self.own(), |agent_id| self.scope_of(agent_id));
        let span_id = match work {
            TracedWork::Execution => scope.agent,
            TracedWork::ModelRequest(request_id) => self.chat_id(request_id),
            TracedWork::ToolCall { step_number, call_id } => self.call_id(scope, step_number, call_id),
        };
        TraceContext::recorded(self.trace_id.to_bytes(), span_id.to_bytes())
    }

    /// Returns the spans that end with an event.
    pub fn note(&mut self, event: &RunEventPayload, at: Timestamp) -> Vec<SpanData> {
        let own = self.own();
        match event {
            RunEventPayload::Agent(event) => self.note_agent(own, event, at),
            event => match event.record() {
                Some(record) => self.ended(own, &record.summary, at),
                None => Vec::new(),
            },
        }
    }

    /// Returns the spans that end with an event in the execution of a subagent.
    pub fn note_subagent(&mut self, agent_id: AgentId, event: &AgentEvent, at: Timestamp) -> Vec<SpanData> {
        self.note_agent(self.scope_of(agent_id), event, at)
    }

    fn note_agent(&mut self, scope: Scope, event: &AgentEvent, at: Timestamp) -> Vec<SpanData> {
        match event {
            AgentEvent::ModelRequested {
                request_id,
                max_output_tokens,
                ..
            } => {
                let asked = Asked {
                    agent: scope.agent,
                    at,
                    max_tokens: *max_output_tokens,
                    first_chunk: None,
                };
                self.asked.insert(*request_id, asked);
            }
            AgentEvent::MessageDelta { .. }
            | AgentEvent::ReasoningDelta { .. }
            | AgentEvent::ToolCallStarted { .. } => {
                // An agent asks one model at a time.
                let asked = self.asked.values_mut().find(|asked| asked.agent == scope.agent);
                if let Some(asked) = asked {
                    asked.first_chunk.get_or_insert(at);
                }
            }
            AgentEvent::ModelResponded { .. } => return self.chat(scope, event, at),
            AgentEvent::ToolCallCompleted { .. } => return self.call(scope, event, at),
            AgentEvent::SubagentStarted { agent_id, .. } => {
                self.subagents.insert(*agent_id, at);
            }
            AgentEvent::SubagentEvent { agent_id, event, .. } => {
                return self.note_agent(self.scope_of(*agent_id), event, at);
            }
            AgentEvent::SubagentCompleted { .. } => return self.subagent(scope, event, at),
            _ => (),
        }
        Vec::new()
    }

    /// Returns the span of a call that has ended.
    fn call(&self, scope: Scope, event: &AgentEvent, at: Timestamp) -> Vec<SpanData> {
        let AgentEvent::ToolCallCompleted {
            step_number,
            call_id,
            name,
            is_error,
            verdict,
            duration_ms,
            ..
        } = event
        else {
            return Vec::new();
        };
        let mut span = self.draft(self.call_id(scope, *step_number, call_id), scope.agent, at);
        span.name = format!("{} {name}", genai::EXECUTE_TOOL).into();
        span.start = at - TimeDelta::milliseconds((*duration_ms).max(0));
        span.set(genai::OPERATION, Some(genai::EXECUTE_TOOL));
        span.set(genai::TOOL_NAME, Some(name.clone()));
        span.set(genai::TOOL_CALL_ID, Some(call_id.clone()));
        span.set(genai::TOOL_TYPE, Some("function"));
        let is_usual = matches!(verdict, ToolVerdict::Executed | ToolVerdict::Unknown);
        span.set(genai::VERDICT, (!is_usual).then(|| verdict.as_str()));
        span.error = is_error.then(|| "tool_error".to_owned());
        vec![span.finish()]
    }

    /// Returns the span of a subagent that has ended.
    fn subagent(&mut self, scope: Scope, event: &AgentEvent, at: Timestamp) -> Vec<SpanData> {
        let AgentEvent::SubagentCompleted {
            step_number,
            call_id,
            agent,
            agent_id,
            session_id,
            status,
            stop_reason,
            usage,
            ..
        } = event
        else {
            return Vec::new();
        };
        let call = self.call_id(scope, *step_number, call_id);
        let mut span = self.draft(self.scope_of(*agent_id).agent, call, at);
        span.start = self.subagents.remove(agent_id).unwrap_or(at);
        self.describe_agent(&mut span, agent, usage);
        span.set(genai::SESSION_ID, Some(session_id.to_string()));
        span.set(genai::STOP_REASON, stop_reason.map(StopReason::as_str));
        span.error = (*status == ExecutionStatus::Failed).then(|| "agent_failed".to_owned());
        vec![span.finish()]
    }

    /// Returns the span of a request to a model that has ended.
    fn chat(&mut self, scope: Scope, event: &AgentEvent, at: Timestamp) -> Vec<SpanData> {
        let AgentEvent::ModelResponded {
            request_id,
            model,
            finish_reason,
            usage,
            error,
            attempts,
            retries,
            duration_ms,
            ..
        } = event
        else {
            return Vec::new();
        };
        let asked = self.asked.remove(request_id).unwrap_or(Asked {
            agent: scope.agent,
            at: at - TimeDelta::milliseconds(*duration_ms),
            max_tokens: None,
            first_chunk: None,
        });
        let mut span = self.draft(self.chat_id(*request_id), asked.agent, at);
        span.kind = SpanKind::Client;
        span.name = format!("{} {}", genai::CHAT, model.model()).into();
        span.start = asked.at;
        span.error = error.as_ref().map(|error| error.code.clone());
        for retry in retries {
            span.add_event(genai::RETRY, retry.began_at, &retry.reason);
        }
        span.set(genai::OPERATION, Some(genai::CHAT));
        let provider = self.providers.0.get(model.provider());
        let server = provider.and_then(|provider| provider.server.as_ref());
        span.set(genai::PROVIDER, provider.map(|provider| provider.name));
        span.set(genai::SERVER_ADDRESS, server.map(|(host, _)| host.clone()));
        span.set(genai::SERVER_PORT, server.map(|(_, port)| i64::from(*port)));
        span.set(genai::PROVIDER_NAME, Some(model.provider().to_owned()));
        span.set(genai::REQUEST_MODEL, Some(model.model().to_owned()));
        span.set(genai::REQUEST_STREAM, Some(true));
        span.set(genai::REQUEST_MAX_TOKENS, asked.max_tokens.map(int));
        let reasons = finish_reason
            .as_ref()
            .map(|reason| vec![StringValue::from(String::from(reason.clone()))]);
        span.set(
            genai::FINISH_REASONS,
            reasons.map(|reasons| Value::Array(Array::String(reasons))),
        );
        let first = asked.first_chunk.and_then(|first| (first - asked.at).to_std().ok());
        span.set(genai::TIME_TO_FIRST_CHUNK, first.map(|first| first.as_secs_f64()));
        span.set(genai::ATTEMPTS, Some(i64::from(*attempts)));
        span.set(genai::CONVERSATION, self.conversation.clone());
        set_usage(&mut span, usage);
        for (name, tokens) in [
            (genai::CACHE_READ_TOKENS, usage.cache_read_tokens),
            (genai::CACHE_WRITE_TOKENS, usage.cache_write_tokens),
            (genai::REASONING_TOKENS, usage.reasoning_tokens),
        ] {
            span.set(name, (tokens > 0).then(|| int(tokens)));
        }
        vec![span.finish()]
    }

    /// Returns the span of the run's own agent, and that of the time in the queue.
    fn ended(&self, own: Scope, run: &RunSummary, at: Timestamp) -> Vec<SpanData> {
        let parent = self.parent.unwrap_or(SpanId::INVALID);
        let started = run.started_at.unwrap_or(run.created_at);
        let mut spans = Vec::new();
        if started > run.created_at {
            let mut queued = self.draft(self.id(&[b"queue"]), parent, started);
            queued.name = "run.queue".into();
            queued.start = run.created_at;
            spans.push(queued.finish());
        }
        let mut span = self.draft(own.agent, parent, run.completed_at.unwrap_or(at));
        span.start = started;
        span.links = self.links.clone();
        self.describe_agent(&mut span, &run.agent, &run.usage);
        span.set(genai::REQUEST_MODEL, Some(run.model.model().to_owned()));
        span.set(genai::SESSION_ID, Some(run.session_id.to_string()));
        span.set(genai::BASE_SESSION_ID, run.base_session_id.map(|id| id.to_string()));
        span.set(
            genai::AGENT_VERSION,
            run.agent_version.map(|version| version.to_string()),
        );
        span.set(genai::ATTEMPT, Some(i64::from(run.attempts)));
        span.set(genai::STATUS, Some(run.status.as_str()));
        span.set(genai::STOP_REASON, run.stop_reason.map(StopReason::as_str));
        span.error = run.error.as_ref().map(|error| error.code.clone());
        spans.push(span.finish());
        spans
    }

    fn describe_agent(&self, span: &mut SpanDraft, agent: &str, usage: &Usage) {
        span.name = format!("{} {agent}", genai::INVOKE_AGENT).into();
        span.set(genai::OPERATION, Some(genai::INVOKE_AGENT));
        span.set(genai::AGENT_NAME, Some(agent.to_owned()));
        span.set(genai::CONVERSATION, self.conversation.clone());
        span.set(genai::RUN_ID, Some(self.run_id.to_string()));
        span.set(genai::TENANT, Some(self.tenant.to_string()));
        set_usage(span, usage);
        span.set(genai::COST, usage.cost.map(values::usage::Cost::dollars));
    }

    fn draft(&self, span_id: SpanId, parent: SpanId, end: Timestamp) -> SpanDraft {
        SpanDraft::new(self.trace_id, span_id, parent, end, end)
    }

    fn own(&self) -> Scope {
        Scope {
            agent: self.own_agent,
            agent_id: None,
        }
    }

    fn scope_of(&self, agent_id: AgentId) -> Scope {
        Scope {
            agent: self.id(&[b"agent", agent_id.as_uuid().as_bytes()]),
            agent_id: Some(agent_id),
        }
    }

    fn chat_id(&self, request_id: ModelRequestId) -> SpanId {
        self.id(&[b"chat", request_id.as_uuid().as_bytes()])
    }

    fn call_id(&self, scope: Scope, step_number: usize, call_id: &str) -> SpanId {
        let agent_id = scope.agent_id.map(AgentId::as_uuid).unwrap_or_default();
        let step_number = (step_number as u64).to_le_bytes();
        self.id(&[b"call", agent_id.as_bytes(), &step_number, call_id.as_bytes()])
    }

    fn id(&self, parts: &[&[u8]]) -> SpanId {
        let run_id = self.run_id.as_uuid();
        derived(&[&[run_id.as_bytes().as_slice()], parts].concat())
    }
}

fn set_usage(span: &mut SpanDraft, usage: &Usage) {
    span.set(genai::INPUT_TOKENS, Some(int(usage.input_tokens)));
    span.set(genai::OUTPUT_TOKENS, Some(int(usage.output_tokens)));
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
