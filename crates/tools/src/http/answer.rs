//! The text of a response that the model reads: all of it, or the part at a JSON pointer. No IO.

use super::content_type::{ContentType, MediaKind};
use super::secrets::Redactor;
use crate::output::beginning;
use agent::ports::{ToolError, ToolOutput};
use net::outgoing::ReadBody;
use values::json::Value;

/// The most bytes of an error response that the model reads.
const MAX_ERROR: usize = 2_000;

/// A response whose body was read.
pub(super) struct Answer {
    pub(super) host: String,
    pub(super) status: u16,
    pub(super) content: ContentType,
    pub(super) body: ReadBody,
}

impl Answer {
    /// Returns the text for the model.
    pub(super) fn into_result(self, pointer: Option<&str>, redactor: &Redactor) -> Result<ToolOutput, ToolError> {
        if !(200..300).contains(&self.status) {
            return Err(ToolError::new(self.error(redactor)));
        }
        let text = match pointer {
            Some(pointer) => self.part(pointer, redactor)?,
            None => self.whole(redactor),
        };
        Ok(ToolOutput::text(text))
    }

    fn error(&self, redactor: &Redactor) -> String {
        let note = match self.status {
            300..400 => " (a redirect that is not followed)",
            _ => "",
        };
        let text = beginning(&self.text(redactor), MAX_ERROR);
        format!("HTTP {}{note} from {}\n{text}", self.status, self.host)
    }

    fn whole(&self, redactor: &Redactor) -> String {
        if self.body.bytes.is_empty() {
            return format!("HTTP {}, without content", self.status);
        }
        let text = self.text(redactor);
        if self.body.is_complete {
            text
        } else {
            let read = self.body.bytes.len();
            format!("[only the first {read} bytes of the response were read; ask for less]\n{text}")
        }
    }

    fn part(&self, pointer: &str, redactor: &Redactor) -> Result<String, ToolError> {
        let unusable = |problem: &str| {
            let text = beginning(&self.text(redactor), MAX_ERROR);
            ToolError::new(format!(
                "HTTP {} from {}, but {problem}\n{text}",
                self.status, self.host
            ))
        };
        if !self.body.is_complete {
            let read = self.body.bytes.len();
            return Err(unusable(&format!(
                "the response has more than {read} bytes; ask for less"
            )));
        }
        let value: Value = serde_json::from_str(&self.content.decode(&self.body.bytes))
            .map_err(|_| unusable("the response is not valid JSON"))?;
        let part = value.pointer(pointer);
        let part = part.ok_or_else(|| unusable(&format!("the response has nothing at {pointer}")))?;
        let text = match part {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Ok(redactor.redacted(text, false))
    }

    fn text(&self, redactor: &Redactor) -> String {
        if self.content.kind(&self.body.bytes) == MediaKind::Binary && !self.body.bytes.is_empty() {
            let (size, kind) = (self.body.bytes.len(), &self.content.media_type);
            return format!("[binary content of at least {size} bytes ({kind}), which is not shown]");
        }
        redactor.redacted(self.content.decode(&self.body.bytes), !self.body.is_complete)
    }
}
