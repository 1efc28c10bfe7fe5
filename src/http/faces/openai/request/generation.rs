//! The settings of generation that both protocols have.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::tools::{Choice, read_choice, read_tools};
use crate::http::checks::{check_metadata, check_reserved};
use crate::http::faces::fields::{Fields, decode, type_of};
use crate::http::openai_settings::OpenAiAccess;
use crate::http::problem::Problem;
use crate::run::{LastingSetting, RunRequest};
use agent::answers::ClientTool;
use agent::compilers::Traces;
use values::json::{Object, Value};
use values::model_parameters::ModelParameters;
use values::model_ref::ResponseFormat;
use values::session::{OverrideChanges, Setting};

/// The settings of a request for one run.
#[derive(Debug, Default)]
pub(in crate::http) struct Generation {
    /// The name of an agent, or `PROVIDER/MODEL`.
    pub(super) model: String,
    pub(super) parameters: ModelParameters,
    pub(super) response_format: Setting<ResponseFormat>,
    pub(super) client_tools: Vec<ClientTool>,
    /// The only tools of the agent that the model gets, if the request narrows them.
    pub(super) tools: Setting<Vec<String>>,
    pub(super) metadata: BTreeMap<String, String>,
}

/// The format of an output with a schema.
#[derive(Debug, Deserialize)]
struct SchemaFormat {
    name: String,
    schema: Option<Value>,
    strict: Option<bool>,
}

impl Generation {
    /// Takes the fields that both protocols have under the same names.
    pub(super) fn take(fields: &mut Fields, access: OpenAiAccess) -> Result<Self, Problem> {
        let tools: Vec<Value> = fields.take("tools")?.unwrap_or_default();
        let choice = fields.take("tool_choice")?.as_ref().map(read_choice).transpose()?;
        let metadata = read_metadata(fields)?;
        let calls_in_parallel = fields.take("parallel_tool_calls")?.unwrap_or(true);
        let mut generation = Self {
            model: fields.required("model")?,
            parameters: ModelParameters {
                temperature: fields.take("temperature")?,
                top_p: fields.take("top_p")?,
                single_tool_call: (!calls_in_parallel).then_some(true),
                ..ModelParameters::default()
            },
            client_tools: read_tools(tools, access.unsupported_tools)?,
            metadata,
            ..Self::default()
        };
        generation.choose(choice.unwrap_or_default());
        Ok(generation)
    }

    /// Applies a choice of tools. Tools that the choice does not allow are left out.
    fn choose(&mut self, choice: Choice) {
        if let Some(allowed) = choice.allowed {
            self.client_tools.retain(|tool| allowed.contains(&tool.name));
            // The others are the agent's own, which a request can narrow by their names.
            let is_callers = |name: &String| self.client_tools.iter().any(|tool| tool.name == *name);
            self.tools = Setting::Set(allowed.into_iter().filter(|name| !is_callers(name)).collect());
        }
        self.parameters.tool_choice = choice.tool_choice;
    }

    /// Returns whether the model may ask for several tools at once.
    pub(super) fn calls_in_parallel(&self) -> bool {
        self.parameters.single_tool_call.is_none()
    }

    /// Sets the format of the output. Plain text is the default of the protocols, and so means the
    /// agent's own format.
    pub(super) fn set_format(&mut self, format: Value, pointer: &str) -> Result<(), Problem> {
        self.response_format = match type_of(&format, pointer)? {
            "text" => Setting::Cleared,
            "json_object" => Setting::Set(ResponseFormat::JsonObject),
            "json_schema" => Setting::Set(read_schema_format(format, pointer)?),
            _ => {
                let words = "not one of `text`, `json_object` and `json_schema`";
                return Err(Problem::invalid_field(format!("{pointer}/type"), words));
            }
        };
        Ok(())
    }

    /// Applies the settings to a request, for its run only. A setting that the client leaves out is
    /// the agent's, not that of the base session.
    pub(super) fn apply(self, request: RunRequest) -> RunRequest {
        let metadata = as_object(&self.metadata);
        RunRequest {
            agent: Some(self.model),
            overrides: OverrideChanges {
                parameters: set_unless(self.parameters.is_empty(), self.parameters),
                system_prompt: Setting::Cleared,
                tools: cleared(self.tools),
            },
            response_format: cleared(self.response_format),
            metadata: set_unless(metadata.is_empty(), metadata),
            client_tools: Some(self.client_tools),
            for_this_run: LastingSetting::ALL.to_vec(),
            traces: Some(Traces::All),
            ..request
        }
    }
}

/// Returns a setting that lasts for no other run.
fn cleared<T>(setting: Setting<T>) -> Setting<T> {
    match setting {
        Setting::Kept => Setting::Cleared,
        set => set,
    }
}

fn set_unless<T>(is_empty: bool, value: T) -> Setting<T> {
    if is_empty {
        Setting::Cleared
    } else {
        Setting::Set(value)
    }
}

/// Takes the key-value pairs of a run or of a conversation.
pub(super) fn read_metadata(fields: &mut Fields) -> Result<BTreeMap<String, String>, Problem> {
    let metadata = fields.take("metadata")?.unwrap_or_default();
    let pairs = as_object(&metadata);
    check_metadata(&pairs, "/metadata")?;
    check_reserved(&pairs, "/metadata")?;
    Ok(metadata)
}

/// Returns texts as a JSON object.
pub(super) fn as_object(metadata: &BTreeMap<String, String>) -> Object {
    let pairs = metadata.iter();
    pairs
        .map(|(key, value)| (key.clone(), Value::String(value.clone())))
        .collect()
}

/// Reads a format with a schema. Chat Completions has its fields one level below.
fn read_schema_format(mut format: Value, pointer: &str) -> Result<ResponseFormat, Problem> {
    let SchemaFormat { name, schema, strict } = match format.get_mut("json_schema") {
        Some(nested) => decode(nested.take(), &format!("{pointer}/json_schema"))?,
        None => decode(format, pointer)?,
    };
    Ok(ResponseFormat::JsonSchema {
        name,
        schema: schema.unwrap_or_else(|| Value::Object(Object::new())),
        strict: strict.unwrap_or_default(),
    })
}
