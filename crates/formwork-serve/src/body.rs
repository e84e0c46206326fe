use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;

/// The first allocation for a body, whatever its `Content-Length` promises.
const FIRST: usize = 128 << 10;

/// The reason why a body could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// It has more bytes than are allowed.
    TooLong,
    /// It was not complete in time.
    TooSlow,
    /// The connection ended, or its framing is wrong; the reason.
    Broken(String),
}

/// Reads a body of at most `max` bytes within `timeout`.
///
/// # Errors
/// [`BodyError`] if it is too long, too slow or broken off.
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
