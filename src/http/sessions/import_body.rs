//! The body of `POST /v1/sessions`. It accepts a response of `GET /v1/sessions/{session_id}`; most
//! fields are optional.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::import_part::decode_parts;
use crate::http::checks::{check_agent_name, check_metadata, check_section, check_variables, check_year};
use crate::http::codes::ProblemCode;
use crate::http::json_body::decode_part;
use crate::http::problem::Problem;
use crate::run::import::{ImportContext, ImportRequest};
use crate::run::{RequestKey, RunContext};
use values::clock::Timestamp;
use values::ids::MessageId;
use values::json::{Object, Unread, escape_token};
use values::message::{ContentPart, Message, MessageTags, ProviderFields, Role};
use values::session::{ContextState, EnvironmentState};
use values::spelling::misspelt;

/// The most messages of a history to make.
const MAX_MESSAGES: usize = 20_000;

/// The keys of an environment, and of a context.
const ENVIRONMENT_KEYS: [&str; 4] = ["variables", "resources", "workspace", "shell"];
const CONTEXT_KEYS: [&str; 13] = [
    "agent_id",
    "parent_agent_id",
    "created_at",
    "model",
    "system_prompt",
    "response_format",
    "overrides",
    "waiting",
    "remembered_approvals",
    "tool_pins",
    "metadata",
    "execution_count",
    "updated_at",
];

/// The most executions an imported agent can have had: the largest number that every JSON reader
/// reads exactly.
const MAX_EXECUTION_COUNT: u64 = 1 << 53;

/// A session to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ImportSession {
    /// The agent that continues it; by default the configured one.
    #[schema(pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$")]
    agent: Option<String>,
    /// Variables and resources. Unknown keys are stored, unless they are a misspelling of a known
    /// one.
    environment_state: Option<EnvironmentState>,
    /// The agent's session data; every field may be left out. Unknown keys are stored, unless they
    /// are a misspelling of a known one.
    #[schema(value_type = Option<ContextState>)]
    context_state: Option<ImportContext>,
    /// The history.
    message_history_state: Option<ImportHistory>,
}

/// The history of a session to make.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ImportHistory {
    /// Oldest first; exactly one result follows each tool call at once. At most 20000 messages.
    #[schema(max_items = 20_000)]
    messages: Vec<ImportMessage>,
}

/// A message of a session to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ImportMessage {
    /// Names the message; by default a new id.
    id: Option<MessageId>,
    /// The author.
    role: Role,
    /// The speaker's name, where several share a role.
    name: Option<String>,
    /// A text, or parts.
    #[schema(value_type = Vec<ContentPart>)]
    content: Box<RawValue>,
    /// The execution and the step that produced it, and its section.
    #[serde(default)]
    tags: MessageTags,
    /// Fields of the provider's message that must go back unchanged.
    provider_fields: Option<ProviderFields>,
    /// Key-value pairs of the caller.
    #[serde(default)]
    metadata: Object,
    /// When it entered the history; by default now.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    created_at: Option<Timestamp>,
}

impl ImportSession {
    /// Checks the values, and makes a request from them.
    pub(super) fn into_request(self, ctx: &RunContext, key: Option<RequestKey>) -> Result<ImportRequest, Problem> {
        if let Some(name) = &self.agent {
            check_agent_name(name, "/agent")?;
        }
        let context = self.context_state.unwrap_or_default();
        check_spelling(&context.other, &CONTEXT_KEYS, "/context_state")?;
        check_metadata(&context.metadata, "/context_state/metadata")?;
        if context.execution_count > MAX_EXECUTION_COUNT {
            let pointer = "/context_state/execution_count";
            return Err(Problem::invalid_field(pointer, "the number is too large"));
        }
        check_year(context.created_at, "/context_state/created_at")?;
        check_year(context.updated_at, "/context_state/updated_at")?;
        let environment = self.environment_state.unwrap_or_default();
        check_spelling(&environment.other, &ENVIRONMENT_KEYS, "/environment_state")?;
        check_variables(&environment.variables, "/environment_state/variables")?;
        let messages = self.message_history_state.unwrap_or_default().messages;
        if messages.len() > MAX_MESSAGES {
            let words = format!("{} messages, and at most {MAX_MESSAGES} are allowed", messages.len());
            let pointer = "/message_history_state/messages";
            return Err(Problem::of_field(ProblemCode::TooManyMessages, pointer, words));
        }
        let messages: Vec<_> = messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| message.into_message(index, ctx))
            .collect::<Result<_, _>>()?;
        Ok(ImportRequest {
            agent: self.agent,
            environment,
            context,
            messages,
            thread: None,
            idempotency: key,
        })
    }
}

impl ImportMessage {
    fn into_message(self, index: usize, ctx: &RunContext) -> Result<Message, Problem> {
        let pointer = format!("/message_history_state/messages/{index}");
        check_section(&self.tags.section, &format!("{pointer}/tags/section"))?;
        check_year(self.created_at, &format!("{pointer}/created_at"))?;
        let pointer = format!("{pointer}/content");
        let content = if self.content.get().starts_with('"') {
            vec![ContentPart::text(decode_part::<String>(&self.content, &pointer)?)]
        } else {
            decode_parts(&self.content, &pointer)?
        };
        Ok(Message {
            id: self.id.unwrap_or_else(|| MessageId::generate(&*ctx.ids)),
            role: self.role,
            name: self.name,
            content,
            tags: self.tags,
            provider_fields: self.provider_fields,
            metadata: self.metadata,
            created_at: self.created_at.unwrap_or_else(|| ctx.clock.now()),
            unread: Unread::default(),
        })
    }
}

/// Rejects misspelt keys. Other unknown keys are stored, since a later version may define them.
fn check_spelling(unknown: &Object, known: &[&str], pointer: &str) -> Result<(), Problem> {
    let slip = unknown
        .keys()
        .find_map(|key| Some((key, misspelt(key, known.iter().copied())?)));
    slip.map_or(Ok(()), |(key, meant)| {
        let pointer = format!("{pointer}/{}", escape_token(key));
        let words = format!("unknown field `{key}`; did you mean `{meant}`?");
        Err(Problem::of_field(ProblemCode::UnknownField, pointer, words))
    })
}
