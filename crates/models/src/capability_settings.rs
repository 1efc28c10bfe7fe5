//! The capabilities of models: plain data.

use serde::Deserialize;

use values::settings::optional_integer;

/// The name of the settings for all models of a provider.
pub(super) const ALL_MODELS: &str = "*";

/// The capabilities of a model. A limit that is `None` is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// Whether it sees pictures.
    pub pictures: Option<bool>,
    /// The files that it reads.
    pub files: Option<Files>,
    /// The largest picture, in bytes of its base64 text.
    #[serde(deserialize_with = "optional_integer::<_, 1, 1_073_741_824, _>")]
    pub max_picture_bytes: Option<usize>,
    /// The longest side of a picture, in pixels.
    #[serde(deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub max_picture_side: Option<usize>,
    /// The most pictures in a request.
    #[serde(deserialize_with = "optional_integer::<_, 0, 100_000, _>")]
    pub max_pictures: Option<usize>,
    /// The most pictures in a request with a large picture.
    pub max_pictures_with_large: Option<usize>,
    /// The most files in a request.
    pub max_files: Option<usize>,
    /// The most bytes of pictures and files in a request, as base64 text.
    pub max_media_bytes: Option<usize>,
    /// The order of roles that its server accepts.
    pub roles: Option<Roles>,
    /// Whether ids of calls have nine letters and digits.
    pub nine_letter_ids: bool,
}

/// The files that a model takes, each kind with those before it. Text files are sent as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// No files.
    None,
    /// PDFs.
    Pdf,
    /// All files but sounds and films.
    #[default]
    Documents,
    /// All files.
    All,
}

/// The order of roles that a server of chat completions accepts, the strictest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roles {
    /// The order of [`Roles::Joined`]; the caller begins and ends, and does not speak right after a
    /// tool.
    Strict,
    /// One system message at the beginning, and no neighbours of one role.
    #[default]
    Joined,
    /// Any order.
    Any,
}
