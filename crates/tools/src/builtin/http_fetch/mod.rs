//! `http_fetch`: a page or a document of the web as text.
//!
//! The model chooses the URL, so `outgoing` guards the operator's network.

mod arguments;
mod page;
mod readable;
mod settings;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;

use self::arguments::{Arguments, Format};
use self::page::Page;
use self::readable::readable;
pub use self::settings::HttpFetchSettings;
use super::super::http::{ContentType, MediaKind, failed};
use super::environment_tool::arguments_schema;
use crate::output::beginning;
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use net::outgoing::{OutgoingClient, OutgoingError, OutgoingResponse, ReadBody, Target, UrlFault, within};
use tasks::off_thread::by_size;
use values::json::Value;

const NAME: &str = "http_fetch";
/// The headers of a response that the model reads.
const SHOWN_HEADERS: [&str; 7] = [
    "content-type",
    "last-modified",
    "etag",
    "location",
    "link",
    "retry-after",
    "content-language",
];
/// The most bytes of such a header.
const MAX_HEADER: usize = 500;
/// The most bytes of the text of an error response.
const MAX_ERROR: usize = 2_000;

/// Makes the tool. Its requests go through the client, whose rules decide where they may go.
pub fn http_fetch(settings: HttpFetchSettings, client: OutgoingClient) -> Arc<dyn Tool> {
    Arc::new(HttpFetch {
        spec: spec(&settings),
        settings,
        client,
    })
}

#[derive(Debug)]
struct HttpFetch {
    spec: ToolSpec,
    settings: HttpFetchSettings,
    client: OutgoingClient,
}

impl HttpFetch {
    async fn fetch(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = Arguments::read(arguments, &self.settings).map_err(ToolError::new)?;
        let target = self.client.target(&arguments.url).map_err(refused)?;
        let host = target.host().to_owned();
        let answered = within(self.settings.timeout, self.exchange(&arguments, target)).await;
        let answer = answered.map_err(|error| failed(NAME, &host, &error))?;
        let is_success = answer.status < 400;
        let tree = context.environment.tree();
        let size = answer.body.as_ref().map_or(0, |body| body.bytes.len() as u64);
        let text = by_size(tree.tenant(), size, move || answer.described(&arguments, is_success)).await;
        if is_success {
            Ok(ToolOutput::text(text))
        } else {
            Err(ToolError::new(text))
        }
    }

    async fn exchange(&self, arguments: &Arguments, target: Target) -> Result<Answer, OutgoingError> {
        let request = arguments.request(target, self.settings.max_redirects);
        let response = self.client.send(request).await?;
        let head = Answer::of(&response);
        if head.content.declared_kind() == Some(MediaKind::Binary) {
            return Ok(head);
        }
        let body = response.read(self.settings.max_response_bytes).await?;
        Ok(Answer {
            body: Some(body),
            ..head
        })
    }
}

impl Tool for HttpFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.fetch(arguments, context))
    }
}

fn refused(fault: UrlFault) -> ToolError {
    ToolError::new(format!("the url can't be used: {fault}"))
}

/// A response.
struct Answer {
    status: u16,
    url: String,
    headers: Vec<(&'static str, String)>,
    content: ContentType,
    declared_size: Option<u64>,
    /// `None` if the body is binary and was not read.
    body: Option<ReadBody>,
}

impl Answer {
    fn of(response: &OutgoingResponse) -> Self {
        let header = |name: &'static str| {
            let value = String::from_utf8_lossy(response.headers().get(name)?.as_bytes());
            Some((name, beginning(&value, MAX_HEADER)))
        };
        Self {
            status: response.status(),
            url: response.target().url().to_string(),
            headers: SHOWN_HEADERS.into_iter().filter_map(header).collect(),
            content: ContentType::of(response.headers()),
            declared_size: response.declared_size(),
            body: None,
        }
    }

    /// Writes the status, the chosen headers, notes about omitted parts, and a page of the text.
    fn described(&self, arguments: &Arguments, is_success: bool) -> String {
        let mut text = format!("HTTP {} from {}\n", self.status, self.url);
        for (name, value) in &self.headers {
            text.extend([name, ": ", value, "\n"]);
        }
        let Some(body) = self.body.as_ref().filter(|body| !self.is_binary(body)) else {
            let size = self
                .declared_size
                .or(self.body.as_ref().map(|body| body.bytes.len() as u64));
            let size = size.map_or_else(|| "unknown size".to_owned(), |size| format!("{size} bytes"));
            text.extend(["[binary content of ", &size, ", which is not shown]"]);
            return text;
        };
        if !body.is_complete {
            let read = body.bytes.len().to_string();
            text.extend(["[only the first ", &read, " bytes of the response were read]\n"]);
        }
        let content = self.text_of(body, arguments.format);
        let max_bytes = if is_success {
            arguments.max_bytes
        } else {
            arguments.max_bytes.min(MAX_ERROR)
        };
        Page::of(&content, arguments.offset, max_bytes).write(&mut text);
        text
    }

    fn is_binary(&self, body: &ReadBody) -> bool {
        self.content.kind(&body.bytes) == MediaKind::Binary
    }

    fn text_of(&self, body: &ReadBody, format: Format) -> String {
        let text = self.content.decode(&body.bytes);
        match (self.content.kind(&body.bytes), format) {
            (MediaKind::Html, Format::Text) => readable(&text, &self.url),
            _ => text,
        }
    }
}

fn spec(settings: &HttpFetchSettings) -> ToolSpec {
    let methods: Vec<_> = settings.methods.iter().map(|method| method.name()).collect();
    let is_safe = settings.is_safe();
    let mut properties = json!({
        "url": {
            "type": "string",
            "maxLength": arguments::MAX_URL,
            "description": "The address, such as https://example.org/page.",
        },
        "method": {"type": "string", "enum": methods, "description": "The method, by default GET."},
        "headers": {
            "type": "object",
            "maxProperties": 20,
            "additionalProperties": {"type": "string", "maxLength": 4096},
            "description": "Headers of the request.",
        },
        "format": {
            "type": "string",
            "enum": ["text", "raw"],
            "description": "text, the default, turns HTML into readable text with links; raw leaves it as it is.",
        },
        "max_bytes": {
            "type": "integer",
            "minimum": 1,
            "maximum": settings.max_text_bytes,
            "description": "The most bytes of text to return. Ask for little if you need little.",
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "maximum": arguments::MAX_OFFSET,
            "description": "Where in the text to begin, in bytes, to read on after a part.",
        },
    });
    if !is_safe {
        properties["body"] = json!({
            "type": "string",
            "maxLength": arguments::MAX_BODY,
            "description": "The body of the request. Name its type in the header content-type.",
        });
    }
    ToolSpec {
        name: NAME.to_owned(),
        description: "Fetches a URL over HTTP and returns the status, some headers and the text. HTML becomes \
                      readable text. A long text comes in parts: read on with offset. Binary content is not shown."
            .to_owned(),
        parameters: arguments_schema(properties, &["url"]),
        idempotent: is_safe,
        read_only: is_safe,
        destructive: !is_safe,
        timeout: Some(settings.call_timeout()),
    }
}
