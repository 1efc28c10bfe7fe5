//! Signs requests with AWS's Signature Version 4, by AWS's own crate. No IO.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningError, SigningSettings, sign};
use aws_sigv4::sign::v4;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue};
use secrecy::ExposeSecret as _;

use crate::settings::AwsCredentials;

/// The name of the service in signatures, which differs from its host name.
const SERVICE: &str = "bedrock";

/// A request that can't be signed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignatureError {
    /// The region or the credentials make no signature.
    #[error("the settings for signatures are incomplete")]
    Settings(#[from] v4::signing_params::BuildError),
    /// The request can't be signed.
    #[error("the request can't be signed")]
    Sign(#[from] SigningError),
    /// The signature makes no header.
    #[error("the name of a header of the signature can't be sent")]
    HeaderName(#[from] InvalidHeaderName),
    /// The credentials make no header.
    #[error("the value of a header of the signature can't be sent")]
    HeaderValue(#[from] InvalidHeaderValue),
}

/// Adds the headers that sign a POST of a JSON body at the given time.
///
/// The path is already encoded, and the signature encodes it once more. For example, a colon in a
/// model's name is `%3A` on the wire and `%253A` in the signature. All services except S3 require
/// this.
pub(super) fn add_signature(
    headers: &mut HeaderMap,
    url: &Url,
    body: &[u8],
    region: &str,
    credentials: &AwsCredentials,
    time: SystemTime,
) -> Result<(), SignatureError> {
    let token = credentials.session_token.as_ref();
    let identity = Credentials::new(
        credentials.access_key_id.clone(),
        credentials.secret_access_key.expose_secret(),
        token.map(|token| token.expose_secret().to_owned()),
        None,
        "configuration",
    )
    .into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(time)
        .settings(SigningSettings::default())
        .build()?
        .into();
    let signed_headers = [("content-type", "application/json")];
    let request = SignableRequest::new(
        "POST",
        url.as_str(),
        signed_headers.into_iter(),
        SignableBody::Bytes(body),
    )?;
    let (instructions, _) = sign(request, &parameters)?.into_parts();
    for (name, value) in instructions.headers() {
        let mut value = HeaderValue::from_str(value)?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes())?, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::super::protocol::endpoint;
    use super::*;

    /// The expected signatures are those of botocore for the same requests.
    #[test]
    fn signatures_are_those_of_awss_own_client() {
        let time = DateTime::parse_from_rfc3339("2015-08-30T12:36:00Z").unwrap().to_utc();
        let host = "https://bedrock-runtime.us-east-1.amazonaws.com";
        let profile = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-v1:0";
        for (host, model, stream, token, path, signature) in [
            (
                host,
                "us.amazon.nova-micro-v1:0",
                true,
                None,
                "/model/us.amazon.nova-micro-v1%3A0/converse-stream",
                "d1e0175f3220388b85b4126282cacba863e3d4ac5462529a3cc793319581c275",
            ),
            (
                host,
                profile,
                false,
                Some("tok+en/="),
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-v1%3A0/converse",
                "351d7bf42674bb00f09b22684b288ac352b92deded7748bf9c21869e5ea62b00",
            ),
            (
                "http://127.0.0.1:8123",
                "m",
                false,
                None,
                "/model/m/converse",
                "e35db956e8d508ea4f9212e2fd3a333d26da1b72fad6f18a90bd696f96604175",
            ),
        ] {
            let url = endpoint(&host.parse().unwrap(), model, stream);
            assert_eq!(url.path(), path);
            let credentials = AwsCredentials {
                access_key_id: "AKIDEXAMPLE".to_owned(),
                secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
                session_token: token.map(Into::into),
            };
            let mut headers = HeaderMap::new();
            let body = br#"{"messages":[]}"#;
            add_signature(&mut headers, &url, body, "us-east-1", &credentials, time.into()).unwrap();
            let shown = format!("{headers:?} {credentials:?}");
            assert!(!shown.contains(signature) && !shown.contains("wJalr"), "{shown}");
            let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
            let signed = if token.is_some() {
                "content-type;host;x-amz-date;x-amz-security-token"
            } else {
                "content-type;host;x-amz-date"
            };
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, SignedHeaders={signed}, Signature={signature}"
            );
            assert_eq!(header("authorization"), Some(expected.as_str()));
            assert_eq!(header("x-amz-date"), Some("20150830T123600Z"));
            assert_eq!(header("x-amz-security-token"), token);
        }
    }
}
