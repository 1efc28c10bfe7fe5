//! The texts by which people recognise a session in a list. Both are short in any session.

use crate::json::{Object, Value};
use crate::message::{ContentPart, Message, Role};

/// The most characters of a preview or a title.
const MAX_CHARS: usize = 160;

/// Returns the beginning of the user's newest message that has a text, as one line: each run of
/// whitespace and control characters is one space. `None` if no message is one. Does not count
/// messages that the agent loop added in the user's place.
pub fn preview_of<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> Option<String> {
    let is_input = |message: &&Message| {
        let tags = &message.tags;
        message.role == Role::User && !tags.is_trace && tags.section.is_messages()
    };
    messages.rev().filter(is_input).find_map(|message| {
        let line = first_line(message.content.iter().filter_map(ContentPart::as_text));
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the beginning of the title in the metadata of a session, if that is a text.
pub fn title_of(metadata: &Object) -> Option<String> {
    let title = metadata.get("title").and_then(Value::as_str)?;
    Some(title.chars().take(MAX_CHARS).collect())
}

/// Joins the words of texts until the line is full. Reads no more of them than that.
fn first_line<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let (mut line, mut left, mut has_gap) = (String::new(), MAX_CHARS, false);
    for c in texts.flat_map(|text| text.chars().chain([' '])) {
        if c.is_whitespace() || c.is_control() {
            has_gap = !line.is_empty();
            continue;
        }
        let space = has_gap.then_some(' ');
        for c in space.into_iter().chain([c]).take(left) {
            line.push(c);
            left -= 1;
        }
        has_gap = false;
        if left == 0 {
            break;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{MessageId, UuidV7Source};
    use crate::message::{MessageTags, Section};

    fn message(role: Role, texts: &[&str]) -> Message {
        let parts = texts.iter().map(|text| ContentPart::text(*text)).collect();
        Message::new(MessageId::generate(&UuidV7Source), role, parts, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_preview_is_one_line_of_the_newest_message_of_the_user() {
        let tagged = |tags| message(Role::User, &["not asked"]).with_tags(tags);
        let history = [
            message(Role::User, &["older"]),
            message(Role::User, &["  What\t is\n\n17 ", "\u{0}* 23? \u{85}"]),
            message(Role::User, &[" \n"]),
            message(Role::User, &[]),
            message(Role::Assistant, &["391"]),
            tagged(MessageTags {
                section: Section::new(Section::SUMMARY),
                ..MessageTags::default()
            }),
            tagged(MessageTags {
                is_trace: true,
                ..MessageTags::default()
            }),
        ];
        assert_eq!(preview_of(history.iter()).as_deref(), Some("What is 17 * 23?"));
        assert_eq!(preview_of(history[2..].iter()), None);
    }

    #[test]
    fn previews_and_titles_are_cut_at_a_character() {
        let long = "é🦀 ".repeat(200);
        let preview = preview_of([message(Role::User, &[long.as_str()])].iter()).unwrap();
        assert_eq!((preview.chars().count(), preview.ends_with(" é")), (160, true));
        assert!(long.starts_with(&preview));
        let filled = preview_of([message(Role::User, &["x".repeat(159).as_str(), "y"])].iter()).unwrap();
        assert_eq!(filled.len(), 159, "the space in the end is left out");
        let title = |value: Value| title_of(json!({"title": value}).as_object().unwrap());
        assert_eq!(title(json!(long)).unwrap().chars().count(), 160);
        assert_eq!((title(json!("a  b")), title(json!(7))), (Some("a  b".to_owned()), None));
        assert_eq!(title_of(&Object::new()), None);
    }
}
