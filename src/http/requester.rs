//! Who asks for an administrative act, for the audit log.

use axum::http::Extensions;

use super::auth::Call;
use super::peer::Peer;
use super::state::Api;
use crate::run::RequestOrigin;
use agent::record::Creator;
use store::audit::{Actor, Requester};
use store::keys::ApiKeyRecord;

impl Call {
    /// Returns the caller as the audit log names it.
    pub(super) fn requester(&self) -> Requester {
        let actor = match (self.key(), self.creator()) {
            (Some(key), _) => key_actor(key),
            (None, Some(Creator::Token(token))) => Actor::Token(token),
            (None, Some(Creator::Certificate(certificate))) => Actor::Certificate(certificate),
            (None, Some(Creator::Key(_)) | None) => Actor::Anonymous,
        };
        requester(&self.api, actor, self.origin.as_ref(), self.peer)
    }
}

/// Returns the holder of a key who logs in or out.
pub(super) fn holder(api: &Api, key: &ApiKeyRecord, extensions: &Extensions) -> Requester {
    let peer = extensions.get::<Peer>().copied();
    requester(api, key_actor(key), extensions.get::<RequestOrigin>(), peer)
}

fn key_actor(key: &ApiKeyRecord) -> Actor {
    Actor::Key {
        key_id: key.key_id,
        label: key.label.clone(),
    }
}

fn requester(api: &Api, actor: Actor, origin: Option<&RequestOrigin>, peer: Option<Peer>) -> Requester {
    Requester {
        actor,
        at: api.runs.clock.now(),
        request_id: origin.map(|origin| origin.request_id.clone()),
        address: peer.map(|Peer(address)| address),
    }
}
