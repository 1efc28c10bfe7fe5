//! The protocols, a folder for each, and their list. All code that depends on the protocol of a
//! provider asks this list.

mod anthropic;
mod bedrock;
mod gemini;
mod openai_chat;
mod openai_responses;

use super::address::SettingsError;
use super::protocol::{Protocol, Wire};
use super::settings::{ProviderKind, ProviderSettings};

/// Returns the protocol of a kind of providers; `None` for scripts, which need none.
pub(super) fn protocol_of(kind: ProviderKind) -> Option<&'static Protocol> {
    Some(match kind {
        ProviderKind::OpenAiChat => &openai_chat::PROTOCOL,
        ProviderKind::OpenAiResponses => &openai_responses::PROTOCOL,
        ProviderKind::Anthropic => &anthropic::PROTOCOL,
        ProviderKind::Gemini => &gemini::PROTOCOL,
        ProviderKind::Bedrock => &bedrock::PROTOCOL,
        ProviderKind::Scripted => return None,
    })
}

/// Makes the encoding for a provider; `None` for a scripted one.
pub fn wire(settings: &ProviderSettings) -> Result<Option<Box<dyn Wire>>, SettingsError> {
    let Some(protocol) = protocol_of(settings.kind) else {
        return Ok(None);
    };
    let url = protocol.address.endpoint(settings)?;
    Ok(Some((protocol.wire)(settings, &url)))
}
