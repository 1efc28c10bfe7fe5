//! The errors of outgoing requests. No message contains a URL, since it may contain secrets.

use std::error::Error;
use std::time::Duration;

use super::resolver::NotPermitted;
use super::target::UrlFault;

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client can't be made")]
pub struct ClientError(#[source] pub(super) Box<dyn Error + Send + Sync>);

/// A request without a response.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    /// The host name has no permitted address.
    #[error("its address is not public")]
    NotPublic,
    /// A redirect leads to a URL that is refused.
    #[error("it redirects to an address that is refused: {0}")]
    Redirect(UrlFault),
    /// There are too many redirects.
    #[error("it redirects more than {max} times")]
    TooManyRedirects {
        /// How many are followed.
        max: usize,
    },
    /// The host could not be reached.
    #[error("it can't be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The connection broke, or the response is not HTTP.
    #[error("the connection to it broke")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The request took too long.
    #[error("it did not answer in time")]
    Timeout,
}

/// Bounds the time of a request.
pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, OutgoingError>>,
) -> Result<T, OutgoingError> {
    let answered = tokio::time::timeout(limit, request).await;
    answered.unwrap_or(Err(OutgoingError::Timeout))
}

impl OutgoingError {
    /// Returns the error of a request that was not sent, or whose response did not begin.
    pub(super) fn not_sent(error: reqwest::Error) -> Self {
        let outermost: &(dyn Error + 'static) = &error;
        let mut causes = std::iter::successors(Some(outermost), |cause| (*cause).source());
        if causes.any(<dyn Error>::is::<NotPermitted>) {
            Self::NotPublic
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_connect() {
            Self::Unreachable(error.without_url().into())
        } else {
            Self::Broken(error.without_url().into())
        }
    }

    /// Returns the error of a response that ended too early.
    pub(super) fn broken(error: reqwest::Error) -> Self {
        Self::Broken(error.without_url().into())
    }

    /// Returns whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Broken(_) | Self::Timeout)
    }
}
