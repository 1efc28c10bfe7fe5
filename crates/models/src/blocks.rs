//! The content blocks of a completion, for protocols whose blocks come one after the other or in
//! pieces with an index. Knows no provider's JSON.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::calls::{Beginning, Call, CallMaker};
use super::fault::Fault;
use super::opaque::Opaque;
use super::room::Room;
use super::settings::CapSettings;
use agent::ports::ModelEvent;
use values::ids::IdSource;
use values::json::RawJson;
use values::message::{Citation, ContentPart, OpaquePart, ReasoningPart, TextPart};

/// A block under construction.
#[derive(Debug)]
pub(super) enum Block {
    /// Words and their sources.
    Text(TextPart),
    /// Reasoning.
    Reasoning(ReasoningPart),
    /// A call of one of our tools.
    Call(Call),
    /// A block that only the provider understands.
    Opaque(Opaque),
}

/// The blocks of one completion.
#[derive(Debug)]
pub(super) struct Blocks {
    list: Vec<Block>,
    /// The position of the latest block with each index; the index is a key only.
    positions: HashMap<u64, usize>,
    room: Room,
    calls: CallMaker,
    /// The position of a call that may repeat an earlier one. It is not emitted until that is
    /// known.
    held: Option<usize>,
}

impl Blocks {
    /// Makes an empty list.
    pub(super) fn new(ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            list: Vec::new(),
            positions: HashMap::new(),
            room: Room::new(caps.parts),
            calls: CallMaker::new(ids, caps.tool_calls),
            held: None,
        }
    }

    /// Returns the latest block with the index (without an index, the latest of all), and the room
    /// for its additions.
    pub(super) fn get(&mut self, index: Option<u64>) -> Option<(&mut Block, &mut Room)> {
        let position = self.position(index)?;
        Some((&mut self.list[position], &mut self.room))
    }

    /// Returns the latest block with the index if it has the same kind as `new`. Otherwise opens
    /// `new`.
    pub(super) fn get_or_open(&mut self, index: Option<u64>, new: Block) -> Result<(&mut Block, &mut Room), Fault> {
        let kind = mem::discriminant(&new);
        match self.position(index) {
            Some(position) if mem::discriminant(&self.list[position]) == kind => {
                Ok((&mut self.list[position], &mut self.room))
            }
            _ => self.open(index, new),
        }
    }

    /// Adds a block. A second block with the same index replaces the first under that index.
    pub(super) fn open(&mut self, index: Option<u64>, block: Block) -> Result<(&mut Block, &mut Room), Fault> {
        self.room.take(1)?;
        let position = self.list.len();
        if let Some(index) = index {
            self.positions.insert(index, position);
        }
        self.list.push(block);
        Ok((&mut self.list[position], &mut self.room))
    }

    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the first blocks.
    pub(super) fn first(&self, count: usize) -> impl Iterator<Item = &Block> {
        self.list.iter().take(count)
    }

    /// Adds a call. Its beginning may be repeated while it is open, and the whole call afterwards.
    pub(super) fn begin_call(
        &mut self,
        index: Option<u64>,
        beginning: Beginning,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let open = index.and_then(|index| self.get(Some(index)));
        if let Some((Block::Call(call), _)) = open
            && call.is_begun_by(&beginning)
        {
            return Ok(());
        }
        self.emit_held(events);
        let id = beginning.id.as_deref();
        let is_known = |block: &Block| matches!(block, Block::Call(call) if call.is_closed_with(id));
        let may_repeat = self.list.iter().any(is_known);
        let mut call = self.calls.make(beginning)?;
        if may_repeat {
            self.held = Some(self.list.len());
        } else {
            self.calls.start(&mut call, events);
        }
        self.open(index, Block::Call(call)).map(|_| ())
    }

    /// Returns whether a call has neither ended nor complete arguments.
    pub(super) fn has_open_calls(&self) -> bool {
        let is_open = |block: &Block| matches!(block, Block::Call(call) if call.is_open());
        self.list.iter().any(is_open)
    }

    /// Emits the call that may repeat an earlier one, unless it does.
    fn emit_held(&mut self, events: &mut Vec<ModelEvent>) {
        let Some(position) = self.held.take() else { return };
        let (earlier, rest) = self.list.split_at_mut(position);
        let Some(Block::Call(held)) = rest.first_mut() else {
            return;
        };
        let is_repeated = |block: &Block| matches!(block, Block::Call(call) if call.is_repeated_by(held));
        if !earlier.iter().any(is_repeated) {
            self.calls.start(held, events);
        }
    }

    /// Takes the end of a block.
    pub(super) fn end(&mut self, index: Option<u64>) {
        if let Some((Block::Call(call), _)) = self.get(index) {
            call.close();
        }
    }

    /// Returns the parts, without empty ones. Open blocks end here. `is_whole`: nothing cut the
    /// completion. `text_of` returns the JSON of a block for the provider.
    pub(super) fn finish(
        mut self,
        is_whole: bool,
        provider: &str,
        text_of: fn(Opaque) -> String,
        events: &mut Vec<ModelEvent>,
    ) -> Vec<ContentPart> {
        self.emit_held(events);
        let parts = self.list.into_iter().filter_map(|block| match block {
            Block::Text(part) => Some(ContentPart::Text(part)),
            Block::Reasoning(part) => Some(ContentPart::Reasoning(part)),
            Block::Call(call) => call.finish(is_whole, events).map(ContentPart::ToolCall),
            Block::Opaque(block) => Some(ContentPart::Opaque(OpaquePart {
                provider: provider.to_owned(),
                raw: RawJson::new(text_of(block)),
            })),
        });
        parts.filter(|part| !is_empty(part)).collect()
    }

    fn position(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(index) => self.positions.get(&index).copied(),
            None => self.list.len().checked_sub(1),
        }
    }
}

impl Block {
    /// Makes an empty text.
    pub(super) fn text() -> Self {
        Self::Text(TextPart::default())
    }

    /// Makes empty reasoning.
    pub(super) fn reasoning() -> Self {
        Self::Reasoning(ReasoningPart::default())
    }

    /// Returns the words of a text.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Text(part) => &part.text,
            _ => "",
        }
    }

    /// Adds words to a text.
    pub(super) fn add_text(&mut self, text: String, events: &mut Vec<ModelEvent>) {
        if let Self::Text(part) = self
            && !text.is_empty()
        {
            part.text.push_str(&text);
            events.push(ModelEvent::TextDelta { text });
        }
    }

    /// Adds a source to a text.
    pub(super) fn cite(&mut self, source: &RawValue, room: &mut Room) -> Result<(), Fault> {
        room.take(1)?;
        if let Self::Text(part) = self {
            part.citations.push(Citation(RawJson::new(source.get())));
        }
        Ok(())
    }

    /// Adds words to reasoning.
    pub(super) fn add_reasoning(&mut self, text: String, events: &mut Vec<ModelEvent>) {
        if let Self::Reasoning(part) = self
            && !text.is_empty()
        {
            part.text.push_str(&text);
            events.push(ModelEvent::ReasoningDelta { text });
        }
    }
}

fn is_empty(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(part) => part.text.is_empty() && part.citations.is_empty(),
        ContentPart::Reasoning(part) => *part == ReasoningPart::default(),
        _ => false,
    }
}
