//! Reads a page as texts and tags. No IO.

use std::mem::take;

use html5gum::Span;
use html5gum::emitters::callback::{Callback, CallbackEvent};

/// The attributes that are read. Others take no memory.
const ATTRIBUTES: [&str; 4] = ["alt", "href", "start", "value"];

/// A part of a page.
pub(super) enum Part {
    Text(String),
    Begin(Tag),
    End(String),
}

/// A tag that begins an element.
#[derive(Default)]
pub(super) struct Tag {
    pub(super) name: String,
    /// Whether it ends with `/>`.
    pub(super) is_self_closing: bool,
    attributes: Vec<(&'static str, String)>,
    /// Whether the last attribute of the list is being read.
    is_reading: bool,
}

impl Tag {
    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the number in an attribute.
    pub(super) fn number(&self, name: &str) -> Option<i32> {
        self.attribute(name)?.trim().parse().ok()
    }

    /// Begins an attribute. Of several with one name, the first counts.
    fn begin_attribute(&mut self, name: &[u8]) {
        let known = ATTRIBUTES.into_iter().find(|known| known.as_bytes() == name);
        let new = known.filter(|known| self.attribute(known).is_none());
        self.is_reading = new.is_some();
        self.attributes.extend(new.map(|name| (name, String::new())));
    }

    fn push_value(&mut self, value: &[u8]) {
        if self.is_reading
            && let Some((_, text)) = self.attributes.last_mut()
        {
            text.push_str(&String::from_utf8_lossy(value));
        }
    }
}

/// Makes parts of the tokens.
#[derive(Default)]
pub(super) struct Parts {
    /// The tag that is being read.
    tag: Tag,
}

impl Callback<Part, ()> for Parts {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Part> {
        match event {
            CallbackEvent::String { value } => return Some(Part::Text(text(value))),
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Tag {
                    name: text(name),
                    ..Tag::default()
                };
            }
            CallbackEvent::AttributeName { name } => self.tag.begin_attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.push_value(value),
            CallbackEvent::CloseStartTag { self_closing } => {
                self.tag.is_self_closing = self_closing;
                return Some(Part::Begin(take(&mut self.tag)));
            }
            CallbackEvent::EndTag { name } => return Some(Part::End(text(name))),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => (),
        }
        None
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
