//! Applies a reply: checks each change against the table of permissions, then makes it.

use std::collections::BTreeSet;

use super::reply::{Decision, NewContent, NewMessage, NewRole, Reply};
use agent::hooks::{HookContext, HookField, HookSubject, is_permitted};
use agent::ports::ToolDecision;
use agent::prompt::check_prompt;
use agent::state::{AgentState, StopSignal};
use agent::{CompiledFormat, HookPoint};
use values::clock::Timestamp;
use values::ids::{IdSource, MessageId};
use values::json::{Object, Value};
use values::message::{ContentPart, Message, Role};
use values::session::check_metadata;

/// Applies the reply to the context. The error says what is wrong with the reply.
pub(super) fn apply(
    reply: Reply,
    context: HookContext,
    source: &str,
    ids: &dyn IdSource,
    now: Timestamp,
) -> Result<HookContext, String> {
    if let Some(name) = forbidden(&reply, context.point) {
        return Err(format!(
            "it has `{name}`, which no webhook may change at {}",
            context.point.as_str()
        ));
    }
    let message = |new: NewMessage| to_message(new, ids, now);
    let HookContext {
        point,
        state,
        subject,
        environment,
    } = context;
    let state = with_context(state, &reply)?;
    let environment = match reply.variables {
        Some(changes) => environment.with_variables(changes),
        None => environment,
    };
    let state = match reply.stop {
        Some(stop) => state.with_stop_signal(StopSignal::new(stop.reason, source, stop.message), now),
        None => state,
    };
    let state = match reply.wants_step {
        Some(true) => state.with_continuation_requested(now),
        Some(false) | None => state,
    };
    let added: Vec<Message> = reply
        .messages
        .unwrap_or_default()
        .into_iter()
        .map(message)
        .collect::<Result<_, _>>()?;
    let state = if added.is_empty() {
        state
    } else {
        state.with_input(added, now)
    };
    let mut subject = subject;
    match &mut subject {
        HookSubject::Input(input) => {
            if let Some(new) = reply.input {
                *input = new.into_iter().map(message).collect::<Result<_, _>>()?;
            }
        }
        HookSubject::ToolUse(tool_use) => {
            if let Some(arguments) = reply.arguments {
                tool_use.call.arguments = Value::Object(arguments).to_string();
            }
            match reply.decision {
                Some(Decision::Block(reason)) => tool_use.decision = ToolDecision::block(reason),
                Some(Decision::Supply(content)) => {
                    let content = visible("decision", content)?;
                    tool_use.decision = ToolDecision::Supply {
                        content,
                        is_error: false,
                    };
                }
                None => (),
            }
        }
        HookSubject::Response(response) => {
            if let Some(content) = reply.content {
                response.content = model_output(content)?;
                // Fields that must return to the provider belong to the original content, so they
                // are dropped.
                response.provider_fields = None;
            }
        }
        HookSubject::ToolExecution(execution) => {
            if let Some(content) = reply.content {
                execution.content = visible("content", content)?;
            }
        }
        HookSubject::State | HookSubject::Request(_) | HookSubject::Errors(_) => (),
    }
    Ok(HookContext {
        point,
        state,
        subject,
        environment,
    })
}

/// Returns the name of a change that is not allowed at the point.
fn forbidden(reply: &Reply, point: HookPoint) -> Option<&'static str> {
    use HookField as F;
    let contents = [F::Response, F::ToolResult];
    let changes: [(&str, &[HookField], bool); 11] = [
        ("metadata", &[F::Metadata], reply.metadata.is_some()),
        ("variables", &[F::Variables], reply.variables.is_some()),
        ("input", &[F::Input], reply.input.is_some()),
        ("decision", &[F::ToolDecision], reply.decision.is_some()),
        ("arguments", &[F::ToolArguments], reply.arguments.is_some()),
        ("content", &contents, reply.content.is_some()),
        ("system_prompt", &[F::SystemPrompt], reply.system_prompt.is_some()),
        ("response_format", &[F::ResponseFormat], reply.response_format.is_some()),
        ("stop", &[F::Continuation], reply.stop.is_some()),
        ("continue", &[F::Continuation], reply.wants_step.is_some()),
        ("messages", &[F::Messages], reply.messages.is_some()),
    ];
    let mut forbidden = changes.into_iter().filter_map(|(name, fields, is_asked)| {
        let permitted = fields.iter().any(|field| is_permitted(point, *field));
        (is_asked && !permitted).then_some(name)
    });
    forbidden.next()
}

fn with_context(state: AgentState, reply: &Reply) -> Result<AgentState, String> {
    let state = match &reply.metadata {
        Some(changes) => with_metadata(state, changes)?,
        None => state,
    };
    let state = match &reply.system_prompt {
        Some(prompt) => {
            check_prompt(prompt).map_err(|error| format!("system_prompt: {error}"))?;
            state.with_system_prompt(prompt.clone())
        }
        None => state,
    };
    Ok(match &reply.response_format {
        Some(response_format) => {
            CompiledFormat::check_size(response_format).map_err(|error| format!("response_format: {error}"))?;
            state.with_response_format(response_format.clone())
        }
        None => state,
    })
}

/// Applies changes of metadata. Checks the limits of a session, since metadata is stored with the
/// session.
fn with_metadata(state: AgentState, changes: &Object) -> Result<AgentState, String> {
    let state = state.with_metadata(changes.clone());
    check_metadata(state.metadata()).map_err(|limit| format!("metadata: {limit}"))?;
    Ok(state)
}

fn to_message(new: NewMessage, ids: &dyn IdSource, now: Timestamp) -> Result<Message, String> {
    let role = match new.role {
        NewRole::User => Role::User,
        NewRole::Assistant => Role::Assistant,
    };
    let content = visible("messages", new.content)?;
    Ok(Message::new(MessageId::generate(ids), role, content, now))
}

/// Checks content for the model.
fn visible(field: &str, content: NewContent) -> Result<Vec<ContentPart>, String> {
    use ContentPart as P;
    let fits = |part: &P| matches!(part, P::Text(_) | P::Image(_) | P::Document(_));
    if content.0.is_empty() || !content.0.iter().all(fits) {
        return Err(format!(
            "{field}: its content is not one or more texts, images and documents"
        ));
    }
    Ok(content.0)
}

/// Checks content that replaces the output of the model. Each call needs its own id, since ids pair
/// calls with results.
fn model_output(content: NewContent) -> Result<Vec<ContentPart>, String> {
    use ContentPart as P;
    let fits = |part: &P| {
        matches!(
            part,
            P::Text(_) | P::ToolCall(_) | P::Reasoning(_) | P::Refusal { .. } | P::Opaque(_)
        )
    };
    if !content.0.iter().all(fits) {
        return Err("content: it has a part that a model can't write".to_owned());
    }
    let calls = content.0.iter().filter_map(|part| match part {
        P::ToolCall(call) => Some(call.id.as_str()),
        _ => None,
    });
    let mut seen = BTreeSet::new();
    if let Some(id) = calls.into_iter().find(|id| !seen.insert(*id)) {
        return Err(format!("content: two calls have the id {id:?}"));
    }
    Ok(content.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use agent::state::{FinishReason, ModelResponse};
    use values::clock::{Clock as _, SystemClock};
    use values::ids::{AgentId, UuidV7Source};
    use values::message::ProviderFields;
    use values::usage::Usage;

    fn reply(field: &str) -> Reply {
        let value = match field {
            "metadata" | "variables" | "arguments" => json!({}),
            "input" | "messages" => json!([]),
            "decision" => json!({"block": "no"}),
            "content" | "system_prompt" => json!("text"),
            "response_format" => json!({"type": "text"}),
            "stop" => json!({"message": "stop"}),
            _ => json!(true),
        };
        Reply::read(json!({field: value}).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn each_point_allows_its_own_fields_and_no_others() {
        use HookPoint as P;
        const ALL: &str =
            "metadata variables input decision arguments content system_prompt response_format stop continue messages";
        const CONTEXT: &str = "metadata variables system_prompt response_format stop continue messages";
        let state = AgentState::new(AgentId::generate(&UuidV7Source), SystemClock.now());
        for (point, allowed) in [
            (P::BeforeExecution, &*format!("{CONTEXT} input")),
            (P::BeforeStep, CONTEXT),
            (P::BeforeModelRequest, "metadata variables stop continue"),
            (P::AfterModelRequest, "metadata variables stop continue content"),
            (P::BeforeToolUse, "metadata variables stop continue arguments decision"),
            (P::AfterToolUse, "metadata variables stop continue content"),
            (P::OnError, "metadata variables stop continue messages"),
            (P::AfterStep, "metadata variables stop continue messages"),
            (P::OnStop, "metadata variables messages"),
            (P::AfterExecution, "metadata variables"),
        ] {
            let is_allowed = |field: &str| allowed.split(' ').any(|other| other == field);
            for field in ALL.split(' ') {
                let context = HookContext::new(point, state.clone(), HookSubject::State);
                let applied = apply(reply(field), context, "webhook", &UuidV7Source, SystemClock.now());
                match applied {
                    Ok(_) => assert!(is_allowed(field), "{point:?} allows {field}"),
                    Err(error) => {
                        assert!(!is_allowed(field), "{point:?}: {error}");
                        let expected = format!("`{field}`, which no webhook may change at {}", point.as_str());
                        assert!(error.contains(&expected), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn replaced_content_loses_the_provider_s_fields() {
        let response = ModelResponse {
            content: vec![ContentPart::text("secret")],
            provider_fields: Some(ProviderFields::owner("p")),
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            provider_tool_calls: std::collections::BTreeMap::new(),
            model: None,
            response_id: None,
        };
        let state = AgentState::new(AgentId::generate(&UuidV7Source), SystemClock.now());
        for (field, content, keeps_fields) in [("content", "text", false), ("metadata", "secret", true)] {
            let subject = HookSubject::Response(Box::new(response.clone()));
            let context = HookContext::new(HookPoint::AfterModelRequest, state.clone(), subject);
            let applied = apply(reply(field), context, "webhook", &UuidV7Source, SystemClock.now());
            let Ok(HookSubject::Response(response)) = applied.map(|context| context.subject) else {
                panic!("{field}")
            };
            assert_eq!(response.content, [ContentPart::text(content)], "{field}");
            assert_eq!(response.provider_fields.is_some(), keeps_fields, "{field}");
        }
    }

    #[test]
    fn content_that_a_model_can_t_write_is_refused() {
        let call = |id: &str| json!({"type": "tool_call", "id": id, "name": "t", "arguments": "{}"});
        for (parts, is_allowed) in [
            (json!([]), true),
            (json!([{"type": "text", "text": "a"}, call("1"), call("2")]), true),
            (
                json!([{"type": "reasoning", "text": "a"}, {"type": "refusal", "text": "b"}]),
                true,
            ),
            (json!([call("1"), call("1")]), false),
            (
                json!([{"type": "tool_result", "call_id": "1", "name": "t", "content": []}]),
                false,
            ),
            (json!([{"type": "hologram"}]), false),
        ] {
            let content: NewContent = serde_json::from_value(parts.clone()).unwrap();
            assert_eq!(model_output(content).is_ok(), is_allowed, "{parts}");
        }
    }
}
