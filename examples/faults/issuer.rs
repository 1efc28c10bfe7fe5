//! An identity provider, which no mishap touches: its one key, and a token for the callers.

use anyhow::{Result, anyhow};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use values::clock::{Clock as _, SystemClock};

/// The `iss` of its tokens.
pub(crate) const ISSUER: &str = "https://login.example.org";
/// The `aud` of its tokens.
pub(crate) const AUDIENCE: &str = "https://agents.example.org";
/// The tenant of all its tokens.
pub(crate) const TENANT: &str = "faults";
/// The name of its key.
const KEY_ID: &str = "1";
/// How long a token is valid, in seconds.
const LIFETIME: i64 = 12 * 60 * 60;

/// The provider; it serves until the process ends.
#[derive(Debug)]
pub(crate) struct Issuer {
    /// Where its key is.
    pub(crate) jwks_uri: String,
    /// A token that is valid as long as the suite takes.
    pub(crate) token: String,
}

impl Issuer {
    /// Makes a key, and serves it.
    pub(crate) async fn start() -> Result<Self> {
        let random = SystemRandom::new();
        let refused = |error| anyhow!("make a key: {error}");
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(refused)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        let pair = pair.map_err(|error| anyhow!("read the key: {error}"))?;
        // An uncompressed point: 4, then both coordinates.
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let keys = json!({"keys": [{
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_ID,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]});
        let now = SystemClock.now().timestamp();
        let head = json!({"alg": "ES256", "typ": "at+jwt", "kid": KEY_ID});
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "caller", "iat": now, "exp": now + LIFETIME,
            "scope": "runs:write sessions:read",
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(&claims));
        let signature = pair.sign(&random, signed.as_bytes()).map_err(refused)?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let jwks_uri = format!("http://{}/jwks", listener.local_addr()?);
        let router = Router::new().route("/jwks", get(async move || Json(keys)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self {
            jwks_uri,
            token: format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)),
        })
    }
}
