//! Open calls as elicitations, and the responses of a client as answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, InputRequest, InputRequests, InputResponses,
};

use super::errors::invalid;
use super::forms::{Form, FormKind, content_of, forms_of, shown};
use super::outcome::hold_room;
use super::server::McpServer;
use agent::answers::{Answer, Answers};
use agent::record::RunRecord;
use tasks::off_thread::{by_size, off_thread};
use values::clock::Timestamp;
use values::ids::RunId;
use values::json::escape_token;
use values::session::{OpenCall, OpenCallKind};

/// Returns whether the client can ask its user for a form.
pub(super) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// Returns the questions about each open call that has not expired; `None` if there is none, or
/// this version can't ask one of them. Holds room for large ones until they have been sent.
pub(super) async fn requests(
    server: &McpServer,
    run: &Arc<RunRecord>,
    now: Timestamp,
) -> Result<Option<InputRequests>, ErrorData> {
    let bytes = hold_room(server, run).await;
    let run = Arc::clone(run);
    by_size(&server.call.tenant, bytes as u64, move || requests_of(&run, now)).await
}

fn requests_of(run: &RunRecord, now: Timestamp) -> Result<Option<InputRequests>, ErrorData> {
    let mut requests = BTreeMap::new();
    for call in open_calls(run, now) {
        let Some(forms) = forms_of(call)? else {
            return Ok(None);
        };
        let count = forms.len();
        for (index, form) in forms.into_iter().enumerate() {
            let key = key_of(run.summary.run_id, call, Some(&form));
            let message = message(run, call, &form, (index, count));
            let params = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message,
                requested_schema: form.schema,
            };
            requests.insert(key, InputRequest::Elicitation(ElicitRequest::new(params)));
        }
    }
    Ok((!requests.is_empty()).then_some(requests))
}

/// Makes the answers from all responses; `None` if some are missing.
pub(super) async fn answers(
    server: &McpServer,
    run: &Arc<RunRecord>,
    responses: InputResponses,
    now: Timestamp,
) -> Result<Option<Answers>, ErrorData> {
    let run = Arc::clone(run);
    off_thread(&server.call.tenant, move || answers_of(&run, responses, now)).await
}

fn answers_of(run: &RunRecord, mut responses: InputResponses, now: Timestamp) -> Result<Option<Answers>, ErrorData> {
    let run_id = run.summary.run_id;
    let mut answers = Vec::new();
    for call in open_calls(run, now) {
        let Some(forms) = forms_of(call)? else {
            return Ok(None);
        };
        let filled = forms.into_iter().map(|form| {
            let response = responses.remove(&key_of(run_id, call, Some(&form)))?;
            Some((form, response))
        });
        let Some(filled) = filled.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let content = content_of(call, filled);
        let about = |words| invalid(format!("the response to {}: {words}", key_of(run_id, call, None)));
        answers.push(Answer {
            call_id: call.call_id.clone(),
            arguments_hash: call.arguments_hash,
            content: content.map_err(about)?,
        });
    }
    Ok(Some(Answers {
        answers,
        ..Answers::default()
    }))
}

/// Returns the open calls that have not expired.
pub(super) fn open_calls(run: &RunRecord, now: Timestamp) -> impl Iterator<Item = &OpenCall> {
    run.open_calls.iter().filter(move |call| call.expires_at > now)
}

/// Names a question. A task may ask several times, so the id of the call is not enough.
fn key_of(run_id: RunId, call: &OpenCall, form: Option<&Form>) -> String {
    let call_id = escape_token(&call.call_id);
    match form.map(|form| &form.kind) {
        Some(FormKind::Question(key)) => format!("{run_id}/{call_id}/{}", escape_token(key)),
        _ => format!("{run_id}/{call_id}"),
    }
}

fn message(run: &RunRecord, call: &OpenCall, form: &Form, (index, count): (usize, usize)) -> String {
    let (agent, tool) = (&run.summary.agent, &call.tool);
    if call.kind == OpenCallKind::Input {
        let all = call.reason.as_deref().unwrap_or("it needs input");
        if count == 1 {
            return format!("The tool {tool} of the agent {agent} asks: {all}");
        }
        // The description of one of several questions begins with its words.
        let question = form.schema.description.as_deref().unwrap_or(all);
        let number = index + 1;
        return format!("The tool {tool} of the agent {agent} asks ({number} of {count}): {question}");
    }
    let (mut arguments, is_complete) = shown(&call.arguments);
    if !is_complete {
        arguments = format!("{arguments} (the run {} has all)", run.summary.run_id);
    }
    if call.kind == OpenCallKind::Client {
        return format!("The agent {agent} asks you for the result of {tool}: {arguments}");
    }
    let reason = call.reason.as_ref().map(|reason| format!(" ({reason})"));
    let reason = reason.unwrap_or_default();
    format!("The agent {agent} asks for your approval to call {tool}{reason}: {arguments}")
}
