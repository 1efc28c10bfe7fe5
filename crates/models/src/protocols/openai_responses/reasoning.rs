//! A reasoning item under construction: its readable summary, and the item itself, which only its
//! provider can read.

use std::collections::BTreeMap;
use std::mem;

use super::partial_text::{Fragment, PartialText};
use crate::fields::{self, Fields};
use agent::ports::ModelEvent;

/// The two lists of texts in a reasoning item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    /// A summary.
    Summary,
    /// The reasoning itself, which some servers reveal.
    Content,
}

impl Section {
    fn list_name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Content => "content",
        }
    }
}

/// The separator of two paragraphs.
const BETWEEN: &str = "\n\n";

/// The text of a reasoning item under construction.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    paragraphs: BTreeMap<(Section, u64), PartialText>,
    has_spoken: bool,
    /// The number of paragraphs that are not counted yet.
    made: usize,
}

impl Reasoning {
    /// Takes words of a paragraph.
    pub(super) fn take_text(&mut self, position: (Section, u64), fragment: Fragment, events: &mut Vec<ModelEvent>) {
        let text = self.paragraph(position);
        let is_new = text.received().is_empty();
        let added = text.take(fragment);
        if added.is_empty() {
            return;
        }
        let is_further = mem::replace(&mut self.has_spoken, true);
        events.push(ModelEvent::ReasoningDelta {
            text: if is_new && is_further {
                format!("{BETWEEN}{added}")
            } else {
                added
            },
        });
    }

    /// Takes the whole item.
    pub(super) fn complete(&mut self, item: &Fields<'_>, events: &mut Vec<ModelEvent>) {
        for section in [Section::Summary, Section::Content] {
            let blocks = item.list(section.list_name()).unwrap_or_default();
            for (index, block) in (0..).zip(blocks) {
                let text = fields::object(block).and_then(|block| block.text("text"));
                self.take_text((section, index), Fragment::Whole(text.unwrap_or_default()), events);
            }
        }
    }

    /// Returns how many paragraphs were added since the last call.
    pub(super) fn take_made(&mut self) -> usize {
        mem::take(&mut self.made)
    }

    /// Returns the words.
    pub(super) fn finish(self) -> String {
        let paragraphs = self.paragraphs.into_values().map(PartialText::finish);
        let paragraphs: Vec<_> = paragraphs.filter(|text| !text.is_empty()).collect();
        paragraphs.join(BETWEEN)
    }

    fn paragraph(&mut self, position: (Section, u64)) -> &mut PartialText {
        self.paragraphs.entry(position).or_insert_with(|| {
            self.made += 1;
            PartialText::default()
        })
    }
}
