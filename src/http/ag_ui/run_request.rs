//! What a page asks for, as the request for a run.

use crate::http::chat_start::{answer_request, message_request};
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::faces::ag_ui::{PageMessage, RunInput, Variables, changed_variables};
use crate::http::problem::Problem;
use crate::run::{EventOptions, InputMessage, RunRequest};
use agent::answers::{Answer, ClientTool, ClientToolFault};
use tasks::off_thread::off_thread;
use values::ids::SessionId;

/// Where a run starts, and what is new.
struct Start {
    base: Base,
    messages: Vec<InputMessage>,
    answers: Vec<Answer>,
}

/// The session that a page continues.
struct Base {
    session_id: Option<SessionId>,
    /// The index of the first message after it.
    first: usize,
    /// Whether the page shows the end of the session, and so has got its variables.
    is_shown: bool,
}

/// A request for a run.
pub(super) struct Prepared {
    pub(super) request: RunRequest,
    /// Whether it has only a message of the user, which interrupts the run at work.
    pub(super) interrupts: bool,
    /// Whether the page shows the end of the session that it continues.
    pub(super) is_shown: bool,
}

/// Makes the request for a run of an agent. The turn at work may be the one to go on from, so only
/// its end shows the base.
pub(super) async fn prepare(thread: &ChatThread<'_>, agent: &str, input: &RunInput) -> Result<Prepared, Problem> {
    let Start {
        base,
        messages,
        answers,
    } = start_of(thread, input).await?;
    let sessions = (base.session_id, thread.session_id().await?);
    let variables = state_changes(thread, input, sessions, base.is_shown).await?;
    let interrupts = !messages.is_empty() && answers.is_empty();
    let request = if interrupts {
        message_request(base.session_id, messages)
    } else {
        answer_request(base.session_id, answers, messages)
    };
    let request = RunRequest {
        variables,
        client_tools: tools_of(thread, agent, input).await?,
        instructions: input.instructions.clone(),
        events: EventOptions { subagents: true },
        ..request
    };
    Ok(Prepared {
        request,
        interrupts,
        is_shown: base.is_shown || base.session_id.is_none(),
    })
}

/// Returns the variables that the state of a page changes, after a base. `last` is the session
/// whose variables the page was last sent, if not those of the base. `is_shown` is whether the page
/// shows the end of the base, and so has got its variables.
pub(super) async fn state_changes(
    thread: &ChatThread<'_>,
    input: &RunInput,
    (base, last): (Option<SessionId>, Option<SessionId>),
    is_shown: bool,
) -> Result<Variables, Problem> {
    let Some(state) = &input.state else {
        return Ok(Variables::new());
    };
    let of_base = thread.variables(base).await?;
    let of_last = thread.variables(last).await?;
    Ok(changed_variables(state, (&of_base, &of_last), is_shown))
}

/// Returns the tools of the page that the agent itself does not declare as client tools.
async fn tools_of(thread: &ChatThread<'_>, agent: &str, input: &RunInput) -> Result<Option<Vec<ClientTool>>, Problem> {
    if input.tools.is_empty() {
        return Ok(None);
    }
    let call = thread.call;
    let agent = call.api.runs.agents.lookup(&call.tenant, agent).await?;
    let declared: Vec<_> = agent.iter().flat_map(|agent| &agent.definition.client_tools).collect();
    let is_new = |tool: &&ClientTool| !declared.iter().any(|declared| declared.name == tool.name);
    let tools: Vec<_> = input.tools.iter().filter(is_new).cloned().collect();
    let own = agent
        .as_ref()
        .map_or_else(Vec::new, |agent| agent.definition.tool_names());
    let checked = off_thread(&call.tenant, move || {
        ClientTool::check_all(&tools, &own).map(|()| tools)
    })
    .await;
    checked.map(Some).map_err(|ClientToolFault { at, message }| {
        let pointer = at.map_or_else(
            || "/tools".to_owned(),
            |(index, field)| format!("/tools/{index}/{field}"),
        );
        Problem::invalid_field(pointer, message)
    })
}

async fn start_of(thread: &ChatThread<'_>, input: &RunInput) -> Result<Start, Problem> {
    let base = base_of(thread, input).await?;
    let messages = input.new_messages(base.first, thread.max_messages())?;
    let open = match base.session_id {
        Some(session_id) => thread.open_calls(session_id).await?,
        None => None,
    };
    let answers = match &open {
        Some((step, open_calls)) => {
            let (open, now) = ((*step, open_calls.as_slice()), thread.call.api.runs.clock.now());
            let answers = input.answers_to(open, now)?;
            if messages.is_empty() && !answers.is_empty() {
                RunInput::check_whole(open, &answers, now)?;
            }
            answers
        }
        None if input.resume.is_empty() => Vec::new(),
        None => return Err(input.nothing_new()),
    };
    let is_answer = open.is_some() && !input.resume.is_empty();
    if messages.is_empty() && answers.is_empty() && !is_answer {
        return Err(input.nothing_new());
    }
    Ok(Start {
        base,
        messages,
        answers,
    })
}

/// Finds the session that a page continues. Refuses a message of the agent that nobody here has
/// made, unless it is a greeting before all messages of the user: the agent never reads it.
async fn base_of(thread: &ChatThread<'_>, input: &RunInput) -> Result<Base, Problem> {
    let mut is_shown = false;
    for (index, message) in input.messages.iter().enumerate().rev() {
        if !message.is_of_agent() {
            continue;
        }
        let Some(turn) = thread.turn_end(message.run_id()).await? else {
            let is_greeting = !input.messages.iter().take(index).any(PageMessage::is_of_user);
            if is_greeting {
                break;
            }
            return Err(Problem::of_field(
                ProblemCode::InvalidField,
                format!("{}/id", message.pointer),
                "no message of the assistant in this thread has this id",
            ));
        };
        is_shown = true;
        if let Some(session_id) = turn.session_id {
            let (session_id, first) = (Some(session_id), index + 1);
            return Ok(Base {
                session_id,
                first,
                is_shown,
            });
        }
    }
    let session_id = if is_shown {
        // All its turns have failed.
        None
    } else {
        before_first(thread, input).await?
    };
    let first = 0;
    Ok(Base {
        session_id,
        first,
        is_shown,
    })
}

/// Finds the session before the first message of the user: it replaces an earlier one with its id.
async fn before_first(thread: &ChatThread<'_>, input: &RunInput) -> Result<Option<SessionId>, Problem> {
    let first = input.messages.iter().find(|message| message.is_of_user());
    if let Some(first) = first
        && let Some(before) = thread.before_message(&first.id).await?
    {
        return Ok(before);
    }
    thread.session_id().await
}
