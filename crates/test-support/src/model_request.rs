//! A request to a model as tests make it.

use std::sync::Arc;

use agent::ports::ModelRequest;
use values::message::Message;
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;

/// Makes a request with these messages and nothing else.
pub fn model_request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: "".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
        provider_tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        response_format: ResponseFormat::Text,
        max_output_tokens: None,
        parameters: Arc::default(),
        trace: None,
    }
}
