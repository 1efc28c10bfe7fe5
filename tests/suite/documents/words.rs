//! Finds what differs from run to run in a text: ids, hashes, keys, times and durations.

/// A text in pieces: words that look like ids or times, and the text between them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Plain(&'t str),
    Id(&'t str),
    Time,
}

/// Returns the text with one word in place of every time, and without durations.
pub(super) fn without_times(text: &str) -> String {
    let pieces = pieces(text).into_iter().map(|piece| match piece {
        Piece::Plain(text) => without_durations(text),
        Piece::Id(id) => id.to_owned(),
        Piece::Time => "TIME".to_owned(),
    });
    pieces.collect()
}

/// Returns the text without the numbers of its durations.
pub(super) fn without_durations(text: &str) -> String {
    let mut parts = text.split("duration_ms\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        format!(
            "{text}duration_ms\":{}",
            part.trim_start_matches(|c: char| c.is_ascii_digit())
        )
    })
}

/// Takes a text apart.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let (mut found, mut plain, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let word = word.trim_end_matches(['.', ':']);
        let special = if is_id(word) {
            Some(Piece::Id(word))
        } else if is_time(word) {
            Some(Piece::Time)
        } else {
            None
        };
        let step = word.len().max(rest.chars().next().map_or(1, char::len_utf8));
        if let Some(special) = special {
            found.push(Piece::Plain(&text[plain..at]));
            found.push(special);
            plain = at + step;
        }
        at += step;
    }
    found.push(Piece::Plain(&text[plain..]));
    found
}

fn is_id(word: &str) -> bool {
    let hex = |text: &str, length| text.len() == length && text.bytes().all(|c| c.is_ascii_hexdigit());
    let uuid = word.len() == 36 && word.matches('-').count() == 4 && hex(&word.replace('-', ""), 32);
    let cursor = word.starts_with(['r', 's']) && hex(word.get(1..).unwrap_or_default(), 32);
    let call = word
        .strip_prefix("call_")
        .is_some_and(|id| hex(id.split('_').next().unwrap_or_default(), 32));
    let key = word.strip_prefix("ark_").is_some_and(|id| hex(id, 64));
    uuid || cursor || call || key || hex(word, 64)
}

fn is_time(word: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        word.get(range)
            .is_some_and(|part| part.bytes().all(|c| c.is_ascii_digit()))
    };
    let date = word.len() >= 10 && digits(0..4) && digits(5..7) && &word[4..5] == "-" && &word[7..8] == "-";
    let clock = word.len() == 8 && digits(0..2) && digits(3..5) && &word[2..3] == ":" && &word[5..6] == ":";
    date || clock
}
