//! The directories of a tree in memory. A directory has an index of names in parts, a name has a
//! slot, and a slot may have a directory again.

mod directory_node;
mod index;
mod part;
mod slot;

pub(super) use self::directory_node::{Node, load_indexes, load_nodes};
pub(super) use self::index::Index;
pub(super) use self::part::{Item, Part, PartState, load_parts};
pub(super) use self::slot::{File, Name, Slot};
