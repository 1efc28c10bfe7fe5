//! HTTP tools: requests that an operator has described, with arguments from the model.
//!
//! The description fixes the scheme, the host and the number of path segments. Arguments can't
//! change them. Secrets go into headers and the query only, never into a result or a log.

mod declared;
mod definition;
mod openapi;

mod tool;

mod operation;
mod plan;
mod secrets;
mod template;

mod answer;
mod content_type;
mod failure;
mod headers;

pub(crate) use self::definition::ValueSource;
pub use self::definition::{HttpToolDefinition, HttpToolSource};
pub use self::secrets::ToolSecrets;
pub(crate) use self::secrets::{Redactor, SecretValue};
pub use self::tool::http_tools;

pub(super) use self::content_type::{ContentType, MediaKind};
pub(super) use self::failure::failed;
pub(crate) use self::headers::{header_name, is_connection_header};
