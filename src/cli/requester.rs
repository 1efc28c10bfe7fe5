//! Who uses the command line, for the audit log.

use store::audit::{Actor, Requester};
use values::clock::{Clock as _, SystemClock};

/// Stands for a name that the operating system does not have.
const UNKNOWN: &str = "unknown";

/// Returns the user of the command line.
pub(super) fn requester() -> Requester {
    Requester {
        actor: Actor::Command {
            user: whoami::username().unwrap_or_else(|_| UNKNOWN.to_owned()),
            host: whoami::hostname().unwrap_or_else(|_| UNKNOWN.to_owned()),
        },
        at: SystemClock.now(),
        request_id: None,
        address: None,
    }
}
