//! Checkouts: directories with the files of a workspace, for commands.
//!
//! A directory is made when a command first needs one. It belongs to one run. When the run ends,
//! the directory is retained, and the next run of the same line of sessions takes it and gets the
//! differences (`checkouts.rs`, `janitor.rs`). Otherwise all files are written (`write.rs`). No
//! directory is ever made from the directory of another line. So files of one run reach another run
//! only through a session.
//!
//! After a command, the changes are found by the facts that the kernel has of a file: size, times,
//! inode and mode (`scan.rs`). A file that changed at the time of the last scan, or after it, is
//! read again even if its facts are the same, as git does for racily clean files. Where changes do
//! not show in the facts, all files are read (`exact_times.rs`).
//!
//! Every path is opened beneath the directory, and no symlink is followed (`beneath.rs`).
//!
//! A run finds the same in a retained directory as in a new one: when a run ends, everything that
//! the tree does not hold is removed or restored (`cleaning.rs`). Extended attributes are not, so
//! the sandbox lets no command set them.

mod checkouts;
mod shelf;

mod run_directory;
mod scan;
mod write;

mod exact_times;
mod find;
mod level;

mod beneath;
mod blocking;
mod cleaning;
mod ephemeral;
mod error;
mod facts;
mod file_clock;
mod janitor;
mod live;
mod removal;

#[cfg(test)]
mod tests;

pub use self::checkouts::{Checkouts, ScratchDirectory};
pub use self::error::CheckoutError;
pub use self::find::{Skipped, SkippedFiles};
pub use self::run_directory::{Checkout, CommandDirectories};
pub use self::scan::Scanned;
