//! What the configuration says about models: plain data.

use serde::Deserialize;

/// The name of the settings for all models of a provider.
pub const ALL_MODELS: &str = "*";

/// What the configuration says about models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapabilitySettings {
    /// Whether they see pictures.
    pub pictures: Option<bool>,
    /// The files that they read.
    pub files: Option<Files>,
    /// The largest picture, in bytes of its base64 text.
    pub max_picture_bytes: Option<usize>,
    /// The longest side of a picture, in pixels.
    pub max_picture_side: Option<usize>,
    /// The most pictures in a request.
    pub max_pictures: Option<usize>,
    /// The order of roles that their server accepts.
    pub roles: Option<Roles>,
}

/// The files that a model takes, each kind with those before it. Text files are sent as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// No files.
    None,
    /// PDFs.
    Pdf,
    /// All files but sounds and films.
    Documents,
    /// All files.
    All,
}

/// The order of roles that a server of chat completions accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roles {
    /// Any order.
    Any,
    /// One system message at the beginning, and no neighbours of one role.
    Joined,
    /// The same; the caller begins and ends, and does not speak right after a tool.
    Strict,
}
