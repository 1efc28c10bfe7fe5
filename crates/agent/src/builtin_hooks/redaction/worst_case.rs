//! Redacts with the worst possible patterns and texts. The result and the memory stay bounded.

use std::cell::Cell;

use serde_json::json;

use super::patterns::{MAX_SEARCH, Patterns, RedactionConfig};
use super::redactor::{MAX_GROWTH, Redactor};
use values::json::Value;
use values::message::ContentPart;

fn patterns(pairs: &[(&str, &str)]) -> Patterns {
    compiled(pairs).unwrap()
}

fn compiled(patterns: &[(&str, &str)]) -> Result<Patterns, String> {
    let pattern =
        |(regex, replacement): &(&str, &str)| json!({"name": "p", "regex": regex, "replacement": replacement});
    let config = json!({"patterns": patterns.iter().map(pattern).collect::<Vec<_>>()});
    let Value::Object(config) = config else {
        panic!("no object")
    };
    Patterns::of(&RedactionConfig::read(&config)?)
}

/// Runs the work, and returns its result and its peak memory in bytes.
fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let mut result = None;
    let taken = allocation_counter::measure(|| result = Some(work()));
    (result.unwrap(), usize::try_from(taken.bytes_max).unwrap())
}

/// Replaces every `a` with the longest replacement that is allowed.
fn amplifying() -> Patterns {
    patterns(&[("a", &"b".repeat(1_000))])
}

#[test]
fn a_text_grows_by_little_however_many_matches_it_has() {
    let patterns = amplifying();
    let (most, more) = (MAX_GROWTH / 999, MAX_GROWTH / 999 + 1);
    for (count, length) in [(1, 1_000), (most, most * 1_000), (more, 1_000), (9_000_000, 1_000)] {
        let text = "a".repeat(count);
        let redactor = Redactor::new(&patterns, &|| false);
        let (redacted, memory) = measured(|| redactor.text(&text).unwrap());
        assert_eq!(redacted.len(), length, "{count}");
        assert!(redacted.bytes().all(|byte| byte == b'b'), "{count}");
        assert!(memory <= 3 * (count + MAX_GROWTH), "{count}: {memory}");
    }
    // Each removal of `ab` uncovers the next `ab`.
    let uncovering = self::patterns(&[("ab", "")]);
    let text = "a".repeat(1_000_000) + &"b".repeat(1_000_000);
    let (redacted, memory) = measured(|| Redactor::new(&uncovering, &|| false).text(&text));
    assert_eq!(redacted.as_deref(), Some(""));
    assert!(memory <= 3 * text.len(), "{memory}");
}

#[test]
fn many_texts_grow_by_little_together() {
    let patterns = amplifying();
    let texts = |parts: usize| vec![ContentPart::Refusal { text: "a".repeat(60) }; parts];
    let length = |content: &[ContentPart]| serde_json::to_string(content).unwrap().len();
    for parts in [10, 10_000] {
        let content = texts(parts);
        let before = length(&content);
        let redactor = Redactor::new(&patterns, &|| false);
        let (redacted, memory) = measured(|| redactor.content(&content).unwrap());
        assert_eq!(Redactor::new(&patterns, &|| false).content(&redacted), None, "{parts}");
        assert!(length(&redacted) <= before + MAX_GROWTH, "{parts}");
        assert!(memory <= 2 * MAX_GROWTH + 1_000 * parts, "{parts}: {memory}");
    }
}

#[test]
fn arguments_grow_by_little_also_where_the_replacement_is_escaped() {
    let patterns = patterns(&[("a", &"\"".repeat(1_000))]);
    for items in [1, 10, 20, 100, 100_000] {
        let text = json!(vec!["a"; items]).to_string();
        let redactor = Redactor::new(&patterns, &|| false);
        let (redacted, memory) = measured(|| redactor.arguments(&text).unwrap());
        assert!(redacted.len() <= text.len() + 2 * MAX_GROWTH, "{items}");
        assert!(serde_json::from_str::<Value>(&redacted).is_ok(), "{items}");
        assert!(memory <= 100 * text.len() + 8 * MAX_GROWTH, "{items}: {memory}");
    }
}

/// Returns as many patterns as the memory limit of one hook allows. They match nothing in
/// [`unfound`]. A match can begin at almost every byte, so most patterns examine every byte.
fn largest() -> Patterns {
    let texts = |count: usize| -> Vec<String> { (0..count).map(|at| format!("[ab]*a[ab]{{900}}c{at}")).collect() };
    let read = |count: usize| {
        let texts = texts(count);
        let pairs: Vec<(&str, &str)> = texts.iter().map(|text| (text.as_str(), "-")).collect();
        compiled(&pairs)
    };
    let count = (20..=50).take_while(|count| read(*count).is_ok()).last().unwrap();
    assert!(count < 50, "{count}");
    read(count).unwrap()
}

/// Returns a pseudo-random text of the letters `a` and `b`.
fn unfound(bytes: usize) -> String {
    let mut state = 1_u64;
    let letters = (0..bytes).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if state >> 63 == 1 { 'a' } else { 'b' }
    });
    letters.collect()
}

#[test]
fn the_largest_patterns_take_little_memory_however_long_the_text_is() {
    let (patterns, compiled) = measured(largest);
    assert!(compiled <= 64 << 20, "{compiled}");
    // The longest text that may be searched with 2 MiB of compiled patterns.
    let longest = MAX_SEARCH >> 21;
    let unmatched = [unfound(4_000), "x".repeat(longest), "sk-1 é".repeat(longest / 7)];
    // Only a text with a match is searched for each pattern separately.
    let matched = unfound(1_000) + "a" + &unfound(900) + "c0" + &unfound(1_000);
    let withheld = "x".repeat(longest + 1);
    let unmatched = unmatched.map(|text| (text, true));
    for (text, is_same) in [unmatched.to_vec(), vec![(matched, false), (withheld, false)]].concat() {
        let redactor = Redactor::new(&patterns, &|| false);
        let (redacted, memory) = measured(|| redactor.text(&text));
        assert_eq!(redacted.is_none(), is_same);
        let is_withheld = |redacted: &String| redacted.starts_with('-') && redacted.len() <= 1_001;
        assert!(redacted.as_ref().is_none_or(is_withheld), "{redacted:?}");
        assert!(memory <= 24 << 20, "{memory}");
    }
}

#[test]
fn a_text_with_a_long_search_for_each_match_is_withheld_when_the_time_is_over() {
    // Each letter is a match, but each search first reads the text to its end.
    let patterns = patterns(&[("[a-z]*!|[a-z]", "-")]);
    let text = "a".repeat(100_000);
    for searches in [0_u32, 1, 100] {
        let left = Cell::new(searches);
        let is_over = || left.replace(left.get().saturating_sub(1)) == 0;
        let redactor = Redactor::new(&patterns, &is_over);
        assert_eq!(redactor.text(&text).as_deref(), Some("-"), "{searches}");
        // A text that was not searched may contain a match, so it is withheld.
        let content = vec![ContentPart::text("1"), ContentPart::Refusal { text: "2".to_owned() }];
        let withheld = vec![ContentPart::text("-"), ContentPart::Refusal { text: "-".to_owned() }];
        assert_eq!(redactor.content(&content), Some(withheld), "{searches}");
        let arguments = redactor.arguments("{}");
        assert_eq!(arguments.as_deref(), Some(r#"{"redacted":true}"#), "{searches}");
    }
    let redacted = "-".repeat(100);
    assert_eq!(Redactor::new(&patterns, &|| false).text(&text[..100]), Some(redacted));
}

#[test]
fn scanning_takes_no_copies() {
    let patterns = patterns(&[("sk-[0-9]+", "[k]")]);
    let numbers = format!("[{}1]", "1,".repeat(1_000_000));
    let content: Vec<ContentPart> = serde_json::from_value(json!([
        {"type": "text", "text": "x".repeat(1_000_000)},
        {"type": "tool_call", "id": "c", "name": "t", "arguments": numbers},
        {"type": "opaque", "provider": "p", "raw": numbers},
    ]))
    .unwrap();
    let (redacted, memory) = measured(|| Redactor::new(&patterns, &|| false).content(&content));
    assert_eq!(redacted, None);
    assert!(memory <= 1 << 20, "{memory}");
}
