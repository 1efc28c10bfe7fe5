//! The tables whose keys are models, `"PROVIDER/MODEL"`: checks the names, and reads
//! `[context_windows]`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::error::ConfigError;
use super::sections::Sections;
use models::ProviderSettings;
use values::model_ref::{ContextWindows, ModelRef};
use values::spelling::nearest;

pub(super) fn context_windows(
    sections: &Sections<'_>,
    providers: &BTreeMap<String, ProviderSettings>,
) -> Result<ContextWindows, ConfigError> {
    let windows: BTreeMap<String, NonZeroU64> = sections.read("context_windows")?;
    let window = |(name, tokens): (&String, &NonZeroU64)| -> Result<_, ConfigError> {
        let model = model_named(sections, "context_windows", "a context window", name, providers)?;
        Ok((model, tokens.get()))
    };
    windows.iter().map(window).collect()
}

/// Reads the name of a model in a table. `what` names the values of the table.
pub(super) fn model_named(
    sections: &Sections<'_>,
    table: &str,
    what: &str,
    name: &str,
    providers: &BTreeMap<String, ProviderSettings>,
) -> Result<ModelRef, ConfigError> {
    let invalid = |problem: String| sections.invalid(&[table, name], problem);
    let model: ModelRef = name
        .parse()
        .map_err(|_| invalid(format!("{what} is named \"PROVIDER/MODEL\"")))?;
    let provider = model.provider();
    if providers.contains_key(provider) {
        return Ok(model);
    }
    let known = providers.keys().map(String::as_str);
    let hint = nearest(provider, known).map_or_else(String::new, |name| format!(", did you mean `{name}`?"));
    Err(invalid(format!("there is no provider `{provider}`{hint}")))
}
