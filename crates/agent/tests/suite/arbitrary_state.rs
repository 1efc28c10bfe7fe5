//! Arbitrary states of agents: everything that one can hold, likely or not.

use std::sync::Arc;

use agent::state::{
    AgentError, AgentState, AgentStep, ErrorKind, ErrorList, ExecutionContinuation, ExecutionStatus, FinishReason,
    ModelResponse, StepExecution, StopReason, StopSignal, SubagentExecution, ToolExecution, ToolTrace, ToolVerdict,
};
use chrono::TimeDelta;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use uuid::Uuid;
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, MessageId, SessionId, StepId, ToolExecutionId};
use values::json::{Object, RawJson, Unread};
use values::message::{
    Citation, ContentPart, Coverage, DocumentPart, ImagePart, MediaSource, Message, MessageTags, OpaquePart,
    ProviderFields, ReasoningPart, Role, Section, TextPart, ToolCall, ToolResult,
};
use values::model_ref::ResponseFormat;
use values::usage::{Cost, Usage};

/// Words that no name of a field is part of.
const WORDS: &str = "[ A-Z0-9{}\"\\\\€\u{1F600}\n]{0,6}";

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn time() -> impl Strategy<Value = Timestamp> {
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    (-9_000_000_000_i64..9_000_000_000).prop_map(move |micros| start + TimeDelta::microseconds(micros))
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(|n| json!(n)),
        WORDS.prop_map(|text| json!([{"in": text}])),
    ]
}

fn object() -> impl Strategy<Value = Object> {
    prop::collection::btree_map("[A-Z]{1,3}", value(), 0..3).prop_map(|fields| fields.into_iter().collect())
}

/// Amounts far above 1,000 dollars lose picodollars in JSON, which shows dollars.
fn usage() -> impl Strategy<Value = Usage> {
    (any::<[u64; 6]>(), of(0..100_000_u32)).prop_map(|(n, mills)| Usage {
        input_tokens: n[0],
        output_tokens: n[1],
        cache_read_tokens: n[2],
        cache_write_tokens: n[3],
        reasoning_tokens: n[4],
        total_tokens: n[5],
        cost: mills.and_then(|mills| Cost::from_dollars(f64::from(mills) / 1000.0)),
        cost_known_part: mills.is_none().then_some(Cost::ZERO),
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    ("c[0-9]", select(vec!["echo", "no_such_tool", ""]), WORDS, of(WORDS)).prop_map(
        |(id, name, arguments, signature)| ToolCall {
            id,
            name: name.to_owned(),
            arguments,
            signature,
        },
    )
}

fn source() -> impl Strategy<Value = MediaSource> {
    prop_oneof![
        WORDS.prop_map(|url| MediaSource::Url { url }),
        (WORDS, WORDS).prop_map(|(media_type, data)| MediaSource::Base64 { media_type, data }),
    ]
}

fn part() -> impl Strategy<Value = ContentPart> {
    let text = (WORDS, prop::collection::vec(WORDS, 0..2), of(WORDS)).prop_map(|(text, citations, signature)| {
        let citations = citations.into_iter().map(|raw| Citation(RawJson::new(raw))).collect();
        ContentPart::Text(TextPart {
            text,
            citations,
            signature,
        })
    });
    let reasoning = (WORDS, of(WORDS), of(WORDS), of(WORDS)).prop_map(|(text, signature, encrypted, id)| {
        ContentPart::Reasoning(ReasoningPart {
            text,
            signature,
            encrypted,
            id,
        })
    });
    let opaque = (WORDS, WORDS).prop_map(|(provider, raw)| {
        let raw = RawJson::new(raw);
        ContentPart::Opaque(OpaquePart { provider, raw })
    });
    let leaf = prop_oneof![
        text,
        reasoning,
        opaque,
        (source(), of(WORDS)).prop_map(|(source, detail)| ContentPart::Image(ImagePart { source, detail })),
        (source(), of(WORDS)).prop_map(|(source, name)| ContentPart::Document(DocumentPart { source, name })),
        call().prop_map(ContentPart::ToolCall),
        WORDS.prop_map(|text| ContentPart::Refusal { text }),
        object().prop_map(|depth| ContentPart::Unknown(json!({"type": "hologram", "depth": depth}))),
    ]
    .boxed();
    let result =
        (call(), prop::collection::vec(leaf.clone(), 0..2), any::<bool>()).prop_map(|(call, content, is_error)| {
            ContentPart::ToolResult(ToolResult {
                call_id: call.id,
                name: call.name,
                content,
                is_error,
            })
        });
    prop_oneof![8 => leaf, 1 => result]
}

fn tags() -> impl Strategy<Value = MessageTags> {
    let ids = (of(uuid()), of(uuid()), of(uuid()));
    let section = select(vec![Section::MESSAGES, Section::SUMMARY, Section::BUFFER, "dreams"]);
    (
        ids,
        any::<[bool; 2]>(),
        section,
        of(any::<[u64; 2]>()),
        of(any::<u64>()),
    )
        .prop_map(
            |((step, execution, agent), [is_trace, is_partial], section, covers, context_tokens)| MessageTags {
                step_id: step.map(StepId::from_uuid),
                execution_id: execution.map(ExecutionId::from_uuid),
                agent_id: agent.map(AgentId::from_uuid),
                is_trace,
                is_partial,
                section: Section::new(section),
                covers: covers.map(|[from, to]| Coverage { from, to }),
                context_tokens,
            },
        )
}

fn provider_fields() -> impl Strategy<Value = ProviderFields> {
    (WORDS, of(WORDS), prop::collection::vec((WORDS, WORDS), 0..2)).prop_map(|(provider, model, fields)| {
        ProviderFields {
            provider,
            model,
            fields: fields
                .into_iter()
                .map(|(name, raw)| (name, RawJson::new(raw)))
                .collect(),
        }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let content = prop::collection::vec(part(), 0..3);
    let rest = (of(WORDS), tags(), of(provider_fields()), object(), time());
    (uuid(), role, content, rest).prop_map(
        |(id, role, content, (name, tags, provider_fields, metadata, at))| Message {
            name,
            tags,
            provider_fields,
            metadata,
            ..Message::new(MessageId::from_uuid(id), role, content, at)
        },
    )
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..3)
}

fn error() -> impl Strategy<Value = AgentError> {
    let kind = select(vec![
        ErrorKind::Tool,
        ErrorKind::Model,
        ErrorKind::Validation,
        ErrorKind::RateLimit,
        ErrorKind::Timeout,
        ErrorKind::Hook,
        ErrorKind::Unknown,
    ]);
    (kind, WORDS, WORDS, of(WORDS)).prop_map(|(kind, code, message, source_name)| AgentError {
        kind,
        code,
        message,
        source_name,
    })
}

fn response() -> impl Strategy<Value = ModelResponse> {
    let finish = select(vec![
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::PauseTurn,
        FinishReason::Interrupted,
        FinishReason::Other("tired".to_owned()),
    ]);
    let content = prop::collection::vec(part(), 0..2);
    (content, of(provider_fields()), finish, usage(), of(WORDS), of(WORDS)).prop_map(
        |(content, provider_fields, finish_reason, usage, model, response_id)| ModelResponse {
            content,
            provider_fields,
            finish_reason,
            usage,
            model,
            provider_tool_calls: std::collections::BTreeMap::new(),
            response_id,
        },
    )
}

fn signal() -> impl Strategy<Value = StopSignal> {
    (
        select(StopReason::ALL.to_vec()),
        WORDS,
        object(),
        of(WORDS),
        any::<bool>(),
    )
        .prop_map(|(reason, message, context, source, is_binding)| StopSignal {
            reason,
            message,
            context,
            source,
            is_binding,
        })
}

fn subagent() -> impl Strategy<Value = SubagentExecution> {
    let status = select(vec![
        ExecutionStatus::Completed,
        ExecutionStatus::Failed,
        ExecutionStatus::Unknown,
    ]);
    let steps = prop::collection::vec((plain_step(), signal(), time(), time()), 0..2);
    (
        WORDS,
        any::<[u128; 3]>(),
        status,
        of(select(StopReason::ALL.to_vec())),
        steps,
    )
        .prop_map(|(agent, ids, status, stop_reason, steps)| {
            let steps = steps.into_iter().map(|(step, signal, started_at, completed_at)| {
                Arc::new(StepExecution {
                    step,
                    continuation: ExecutionContinuation {
                        stop_signals: vec![signal],
                        ..ExecutionContinuation::default()
                    },
                    started_at,
                    completed_at,
                    unread: Unread::default(),
                })
            });
            SubagentExecution {
                agent,
                agent_id: AgentId::from_uuid(Uuid::from_u128(ids[0])),
                session_id: SessionId::from_uuid(Uuid::from_u128(ids[1])),
                execution_id: ExecutionId::from_uuid(Uuid::from_u128(ids[2])),
                status,
                stop_reason,
                steps: steps.collect(),
            }
        })
}

fn execution() -> impl Strategy<Value = ToolExecution> {
    let verdict = select(vec![
        ToolVerdict::Executed,
        ToolVerdict::Blocked,
        ToolVerdict::Supplied,
        ToolVerdict::Unknown,
    ]);
    let content = prop::collection::vec(part(), 0..2);
    let trace = prop_oneof![
        2 => Just(ToolTrace::default()),
        1 => (usage(), of(subagent()), any::<bool>()).prop_map(|(usage, subagent, ends_run)| ToolTrace {
            usage,
            subagent: subagent.map(Arc::new),
            ends_run,
            ..ToolTrace::default()
        }),
    ];
    let verdict = (verdict, any::<bool>());
    (uuid(), call(), content, of(error()), time(), time(), verdict, trace).prop_map(
        |(id, call, content, error, started_at, completed_at, (verdict, is_foreign), trace)| ToolExecution {
            id: ToolExecutionId::from_uuid(id),
            call,
            content,
            error,
            started_at,
            completed_at,
            verdict,
            is_foreign,
            trace,
        },
    )
}

/// A step without tools, which has been sent something.
fn plain_step() -> impl Strategy<Value = AgentStep> {
    (
        uuid(),
        messages(),
        messages(),
        (of(response()), of(value())),
        prop::collection::vec(error(), 0..2),
    )
        .prop_map(|(id, input, output, (response, value), errors)| {
            let mut step = AgentStep::new(StepId::from_uuid(id), input.into_iter().map(Arc::new).collect());
            step.output_messages = output.into_iter().map(Arc::new).collect();
            step.response = response;
            step.value = value;
            step.errors = errors.into_iter().collect::<ErrorList>();
            step
        })
}

fn step() -> impl Strategy<Value = AgentStep> {
    (plain_step(), prop::collection::vec(execution(), 0..3)).prop_map(|(mut step, executions)| {
        step.tool_executions = executions;
        step
    })
}

/// The changes of a state in a step.
#[derive(Debug, Clone)]
struct Happening {
    step: Option<AgentStep>,
    signals: Vec<StopSignal>,
    is_continuation_requested: bool,
    is_retry_wanted: bool,
    error: Option<AgentError>,
    hook_usage: Usage,
    is_recorded: bool,
    added: Vec<Message>,
    at: Timestamp,
}

impl Happening {
    fn apply(self, state: AgentState) -> AgentState {
        let at = self.at;
        let mut state = state.with_step_started(at);
        if let Some(step) = self.step {
            state = state.with_current_step(step, at);
        }
        state = self
            .signals
            .into_iter()
            .fold(state, |state, signal| state.with_stop_signal(signal, at));
        if self.is_continuation_requested {
            state = state.with_continuation_requested(at);
        }
        if self.is_retry_wanted {
            state = state.with_retry_wanted(at);
        }
        if let Some(error) = self.error {
            state = state.with_error(error, at);
        }
        state = state.with_hook_usage(self.hook_usage, at);
        if self.is_recorded {
            state = state.with_step_recorded(at);
        }
        state.with_trace(self.added, at)
    }
}

fn happening() -> impl Strategy<Value = Happening> {
    let signals = prop::collection::vec(signal(), 0..3);
    (
        of(step()),
        signals,
        any::<[bool; 3]>(),
        (of(error()), usage()),
        messages(),
        time(),
    )
        .prop_map(
            |(step, signals, [requested, retry, is_recorded], (error, hook_usage), added, at)| Happening {
                step,
                signals,
                is_continuation_requested: requested,
                is_retry_wanted: retry,
                error,
                hook_usage,
                is_recorded,
                added,
                at,
            },
        )
}

fn format() -> impl Strategy<Value = ResponseFormat> {
    prop_oneof![
        Just(ResponseFormat::Text),
        Just(ResponseFormat::JsonObject),
        (WORDS, object(), any::<bool>()).prop_map(|(name, schema, strict)| ResponseFormat::JsonSchema {
            name,
            schema: schema.into(),
            strict,
        }),
    ]
}

/// The states of an agent in the order in which they were: at the beginning of an execution, or
/// between two, and after what happened then.
pub(crate) fn states() -> impl Strategy<Value = Vec<AgentState>> {
    let identity = (uuid(), of(uuid()), time(), any::<bool>());
    let context = (WORDS, format(), object(), messages());
    let execution = of((uuid(), time(), prop::collection::vec(happening(), 0..3), any::<bool>()));
    (identity, context, execution).prop_map(|((id, parent, at, has_model), context, execution)| {
        let (system_prompt, response_format, metadata, input) = context;
        let state = AgentState::new(AgentId::from_uuid(id), at)
            .with_parent_agent_id(parent.map(AgentId::from_uuid))
            .with_model(has_model.then(|| "fake/one".parse().unwrap()))
            .with_system_prompt(system_prompt)
            .with_response_format(response_format)
            .with_metadata(metadata)
            .with_trace(input, at);
        let Some((execution_id, began, happenings, ends)) = execution else {
            return vec![state];
        };
        let begun = state.start_execution(ExecutionId::from_uuid(execution_id), began);
        let mut states = vec![begun];
        for happening in happenings {
            let next = happening.apply(states[states.len() - 1].clone());
            states.push(next);
        }
        if ends {
            let last = states[states.len() - 1].clone().with_execution_ended(began);
            states.push(last);
        }
        states
    })
}
