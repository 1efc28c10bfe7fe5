//! `[capabilities."PROVIDER/MODEL"]`: what models can take, on top of what is known of them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::Fault;
use super::prices::check_name;
use super::providers::ProviderConfig;
use super::values::optional_integer;
use models::{Capabilities, Files, Roles};
use values::model_ref::ModelRef;

/// What a model can take. The model `*` is for all models of the provider.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityConfig {
    /// Whether it sees pictures.
    #[serde(default)]
    pub pictures: Option<bool>,
    /// The files that it reads.
    #[serde(default)]
    pub files: Option<Files>,
    /// The largest picture, in bytes of base64.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_073_741_824, _>")]
    pub max_picture_bytes: Option<usize>,
    /// The longest side of a picture, in pixels.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub max_picture_side: Option<usize>,
    /// The most pictures in a request.
    #[serde(default, deserialize_with = "optional_integer::<_, 0, 100_000, _>")]
    pub max_pictures: Option<usize>,
    /// The order of roles that its server accepts.
    #[serde(default)]
    pub roles: Option<Roles>,
}

/// Returns what the models of a provider can take, by model.
pub(super) fn of_provider(
    capabilities: &BTreeMap<String, CapabilityConfig>,
    provider: &str,
) -> BTreeMap<String, Capabilities> {
    let entry = |(name, config): (&String, &CapabilityConfig)| {
        let model: ModelRef = name.parse().ok()?;
        let settings = Capabilities {
            pictures: config.pictures,
            files: config.files,
            max_picture_bytes: config.max_picture_bytes,
            max_picture_side: config.max_picture_side,
            max_pictures: config.max_pictures,
            roles: config.roles,
            ..Capabilities::default()
        };
        (model.provider() == provider).then(|| (model.model().to_owned(), settings))
    };
    capabilities.iter().filter_map(entry).collect()
}

pub(super) fn check(
    capabilities: &BTreeMap<String, CapabilityConfig>,
    providers: &BTreeMap<String, ProviderConfig>,
) -> Result<(), Fault> {
    let mut names = capabilities.keys();
    names.try_for_each(|name| check_name("capabilities", "a model with capabilities", name, providers))
}
