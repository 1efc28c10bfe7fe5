//! A model that plays a script from a file, for demos, tests and benchmarks. No network.
//!
//! A script is a TOML file, a list of turns. The first turn whose conditions all hold is played.
//! The choice depends only on the request. So continuing, forking and retrying work as with any
//! model, and any number of runs can share one script:
//!
//! ```toml
//! [[turn]]
//! when = "weather"            # the last user message contains this, in any case; absent: any
//! step = 0                    # assistant messages since the last user message; absent: any
//! delay_ms = 200              # pause before the first piece
//! chunk_delay_ms = 20         # pause before each further piece
//! chunk_chars = 8             # the size of a piece of text; absent: a text is one piece
//! reasoning = "I should look."
//! text = "Looking up {{input}} …"
//! tool_calls = [{ name = "calculator", arguments = { expression = "{{expression}}" } }]
//! usage = { input_tokens = 100, output_tokens = 20 }   # absent: estimated, four bytes a token
//! finish_reason = "stop"      # absent: `tool_calls` with calls, `stop` without
//!
//! [[turn]]
//! when = "crash"
//! text = "This never ends"
//! chunk_chars = 4
//! failure = { class = "overload", status = 529, message = "no capacity", after_chunks = 2 }
//! ```
//!
//! Placeholders in texts and arguments: `{{input}}` is the last user message and `{{first_input}}`
//! the first. `{{expression}}` is the arithmetic in the last one, or `6 * 7`. `{{tool_result}}` is
//! the last tool result. `{{user_messages}}` is the number of user messages. A turn without `text`,
//! `tool_calls` or `failure` is an empty response. `arguments` can also be a string, which is sent
//! unchanged. `config/scripts/demo.toml` is the built-in script.

mod model;
mod play;
mod script;

pub use self::model::Scripted;
pub use self::script::{Script, ScriptError};
