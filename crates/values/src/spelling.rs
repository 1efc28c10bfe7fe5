//! Finds the known name that is most similar to a mistyped one. No IO.

/// Finds the candidate that is most similar to the mistyped `name`.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (similarity(&name, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= 0.6)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

/// Finds the candidate of which `name` is a typing error. Stricter than [`nearest`]: the names must
/// be too similar to be two different names.
pub fn misspelt<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let mut candidates = candidates.into_iter();
    candidates.find(|candidate| strsim::normalized_damerau_levenshtein(&name, candidate) >= 0.75)
}

/// Finds the known name that was meant, from the message of a decoder. The message has the unknown
/// name and then the known names in backticks.
pub fn meant(message: &str) -> Option<&str> {
    let mut named = message.split('`').skip(1).step_by(2);
    nearest(named.next()?, named)
}

/// Returns the similarity from 0 to 1. A shortened name (`api_key` for `api_key_env`) or an
/// extended one counts as similar.
fn similarity(name: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(name, candidate);
    let (short, long) = if name.len() < candidate.len() {
        (name, candidate)
    } else {
        (candidate, name)
    };
    if short.len() >= 3 && long.starts_with(short) {
        0.6 + 0.4 * edits
    } else {
        edits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_typing_error_is_a_misspelling() {
        for (typed, wanted) in [
            ("metdata", Some("metadata")),
            ("systemprompt", Some("system_prompt")),
            ("Text", Some("text")),
            ("txt", Some("text")),
            ("next", Some("text")),
            ("hologram", None),
            ("text_and_more", None),
            ("meta", None),
        ] {
            let found = misspelt(typed, ["metadata", "system_prompt", "text"]);
            assert_eq!(found, wanted, "for `{typed}`");
        }
    }
}
