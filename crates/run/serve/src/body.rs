use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;

/// The first allocation for a body, whatever its `Content-Length` promises.
const FIRST: usize = 128 << 10;

/// The reason why a body could not be read.
///
/// ```
/// use axum::http::StatusCode;
/// use formwork_serve::BodyError;
///
/// fn status(error: &BodyError) -> StatusCode {
///     match error {
///         BodyError::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
///         BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
///         BodyError::Broken(_) => StatusCode::BAD_REQUEST,
///     }
/// }
///
/// assert_eq!(status(&BodyError::TooLong), 413);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// The body exceeds the maximum length.
    TooLong,
    /// The body was not complete within the time limit.
    TooSlow,
    /// The connection ended, or its framing is wrong; the reason.
    Broken(String),
}

/// Reads a body of at most `max` bytes within `timeout`.
///
/// # Errors
/// [`BodyError`] if the body is too long, too slow or incomplete.
///
/// ```
/// use std::time::Duration;
///
/// use axum::body::Body;
/// use axum::http::HeaderMap;
/// use formwork_serve::{BodyError, read_body};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let (headers, limit) = (HeaderMap::new(), Duration::from_secs(10));
/// let read = async |max| read_body(&headers, Body::from("hello"), max, limit).await;
/// assert_eq!(read(5).await, Ok(b"hello".to_vec()));
/// assert_eq!(read(4).await, Err(BodyError::TooLong));
/// # });
/// ```
pub async fn read_body(
    headers: &HeaderMap,
    body: Body,
    max: usize,
    timeout: Duration,
) -> Result<Vec<u8>, BodyError> {
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > max) {
        return Err(BodyError::TooLong);
    }
    let whole = async {
        let mut bytes = Vec::with_capacity(length.unwrap_or(0).min(FIRST));
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| BodyError::Broken(error.to_string()))?;
            if bytes.len() + piece.len() > max {
                return Err(BodyError::TooLong);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    };
    tokio::time::timeout(timeout, whole).await.unwrap_or(Err(BodyError::TooSlow))
}
