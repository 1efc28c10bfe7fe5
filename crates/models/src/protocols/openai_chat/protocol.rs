//! The addresses of the chat completions API, its encoder and its decoder.

use std::sync::Arc;

use super::decoder::ChatDecoder;
use super::encoder::encode_request;
use super::server::{Server, leaves_think_tags};
use crate::address::{AddressRules, KeyHeader};
use crate::protocol::{Decoder, Dialect, Protocol, Wire};
use crate::settings::CapSettings;
use agent::ports::ModelRequest;
use values::ids::IdSource;

/// The protocol.
pub(crate) static PROTOCOL: Protocol = Protocol {
    address: AddressRules {
        base: "https://api.openai.com/v1",
        version: "",
        path: &["chat", "completions"],
        key: KeyHeader::Bearer,
        headers: &[],
    },
    wire: |settings, url| {
        Box::new(Chat {
            dialect: Dialect::new(settings, url),
            server: Server::at(url),
            think_tags: settings.think_tags.unwrap_or_else(|| leaves_think_tags(url)),
        })
    },
};

/// The encoding for one provider.
#[derive(Debug)]
struct Chat {
    dialect: Dialect,
    server: Server,
    /// Whether its models write their reasoning into the text, between `<think>` and `</think>`.
    think_tags: bool,
}

impl Wire for Chat {
    fn encode(&self, request: &ModelRequest, stream: bool) -> Vec<u8> {
        encode_request(request, &self.dialect, self.server, stream)
    }

    fn decoder(&self, content_type: Option<&str>, caps: CapSettings, ids: Arc<dyn IdSource>) -> Box<dyn Decoder> {
        let decoder = ChatDecoder::new(&self.dialect.provider, content_type, caps, ids);
        Box::new(if self.think_tags {
            decoder.splitting_think_tags()
        } else {
            decoder
        })
    }
}
