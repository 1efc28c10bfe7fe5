//! A model that plays a script from a file: for demos, tests and benchmarks. No network.
//!
//! A script is a TOML file, a list of turns. The first turn whose conditions all hold is played; what is played depends on the
//! request alone, so continuing, forking and repeating work as with any model, and any number of runs share one script:
//!
//! ```toml
//! [[turn]]
//! when = "weather"            # the last user message holds this, whatever the case; absent: any
//! step = 0                    # assistant messages since the last user message; absent: any
//! delay_ms = 200              # waited before anything is said
//! chunk_delay_ms = 20         # waited before each further piece
//! chunk_chars = 8             # the size of a piece of text; absent: a text is one piece
//! reasoning = "I should look."
//! text = "Looking up {{input}} …"
//! tool_calls = [{ name = "calculator", arguments = { expression = "{{expression}}" } }]
//! usage = { input_tokens = 100, output_tokens = 20 }   # absent: estimated from the request, four bytes a token
//! finish_reason = "stop"      # absent: `tool_calls` with calls, `stop` without
//!
//! [[turn]]
//! when = "crash"
//! text = "This never ends"
//! chunk_chars = 4
//! failure = { class = "overload", status = 529, message = "no capacity", after_chunks = 2 }
//! ```
//!
//! Placeholders in texts and arguments: `{{input}}` is the last user message, `{{first_input}}` the first, `{{expression}}` the
//! arithmetic found in the last one, else `6 * 7`; `{{tool_result}}` is the last tool result, `{{user_messages}}` the number of
//! user messages. A turn without `text`, `tool_calls` or `failure` is an empty answer. `arguments` may also be a string, which is
//! sent as it is. `config/scripts/demo.toml` is the script that is built in.

mod model;
mod play;
mod script;

pub use self::model::Scripted;
pub use self::script::{Script, ScriptError};
