//! Who started a run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use values::ids::ApiKeyId;
use values::json::Object;

/// Who started a run: the API key, the claims of the token of an identity provider, or the name of
/// a client certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Creator {
    /// The holder of an API key.
    Key(KeyCreator),
    /// The holder of a token.
    Token(TokenCreator),
    /// The owner of a client certificate.
    Certificate(CertificateCreator),
}

/// The API key that started a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyCreator {
    /// Names the key.
    pub key_id: ApiKeyId,
}

/// The claims of the token that started a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenCreator {
    /// The identity provider.
    pub issuer: String,
    /// The subject.
    pub sub: String,
    /// The client to which the token was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azp: Option<String>,
    /// The party that acts for the subject (RFC 8693).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<Object>,
}

/// The client certificate that started a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CertificateCreator {
    /// The name in the certificate by which the configuration knows it.
    pub certificate: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_creator_is_read_as_it_was_written() {
        for written in [
            json!({"key_id": "01a1fd8f-1377-7581-847a-0e0a2f37f5f2"}),
            json!({"issuer": "https://login.example.org", "sub": "u"}),
            json!({"issuer": "https://login.example.org", "sub": "u", "azp": "c", "act": {"sub": "a", "act": {"sub": "b"}}}),
            json!({"certificate": "spiffe://example.org/gateway"}),
        ] {
            let creator: Creator = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(matches!(creator, Creator::Key(_)), written.get("key_id").is_some());
            assert_eq!(
                matches!(creator, Creator::Certificate(_)),
                written.get("certificate").is_some()
            );
            assert_eq!(serde_json::to_value(creator).unwrap(), written);
        }
    }
}
