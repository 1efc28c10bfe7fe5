//! The response to a request. Its body is read up to a limit.

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use reqwest::Response;
use reqwest::header::HeaderMap;

use super::error::OutgoingError;
use super::target::Target;

/// A response whose body is not read yet.
#[derive(Debug)]
pub struct OutgoingResponse {
    response: Response,
    target: Target,
}

/// The body of a response, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBody {
    /// The bytes, decompressed.
    pub bytes: Bytes,
    /// Whether these are all bytes of the body.
    pub is_complete: bool,
}

impl OutgoingResponse {
    pub(super) fn new(response: Response, target: Target) -> Self {
        Self { response, target }
    }

    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the URL of the response, after all redirects.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the size of the body that the response declares.
    pub fn declared_size(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the pieces of the body as they arrive. Limits of size and time belong to the reader.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, OutgoingError>> + Send + 'static {
        self.response.bytes_stream().map_err(OutgoingError::broken)
    }

    /// Reads the body up to the limit, and then drops the connection.
    pub async fn read(mut self, max: usize) -> Result<ReadBody, OutgoingError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.response.chunk().await.map_err(OutgoingError::broken)? {
            let room = max - body.len();
            if bytes.len() > room {
                body.extend_from_slice(&bytes[..room]);
                return Ok(ReadBody {
                    bytes: body.into(),
                    is_complete: false,
                });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(ReadBody {
            bytes: body.into(),
            is_complete: true,
        })
    }
}
