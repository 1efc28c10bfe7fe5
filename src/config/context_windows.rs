//! `[context_windows]`: the context windows of models in tokens, by `"PROVIDER/MODEL"`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::error::Fault;
use super::prices::check_name;
use super::providers::ProviderConfig;
use values::model_ref::ContextWindows;

/// Builds the table of context windows for summaries. Checked entries are never dropped.
pub(super) fn table(windows: &BTreeMap<String, NonZeroU64>) -> ContextWindows {
    let entry = |(name, tokens): (&String, &NonZeroU64)| Some((name.parse().ok()?, tokens.get()));
    windows.iter().filter_map(entry).collect()
}

pub(super) fn check(
    windows: &BTreeMap<String, NonZeroU64>,
    providers: &BTreeMap<String, ProviderConfig>,
) -> Result<(), Fault> {
    let mut names = windows.keys();
    names.try_for_each(|name| check_name("context_windows", "a context window", name, providers))
}
