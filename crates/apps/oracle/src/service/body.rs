//! Reads the body of a request as a wallet, within limits.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use formwork_serve::{BodyError, RequestId, is_compressed, media_type, read_body};

use super::problem::{Kind, Problem};
use crate::wallet::{Reader, Wallet};

/// The size in bytes above which a body is parsed on a separate thread, so that it does not delay other requests.
const LONG: usize = 128 << 10;

/// The media type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Csv,
}

impl Media {
    pub(super) fn of(headers: &HeaderMap, id: &RequestId) -> Result<Self, Problem> {
        let unsupported = |what: &str| {
            let detail =
                format!("{what}: send a wallet as application/json, or its transactions as text/csv");
            Problem::new(Kind::UNSUPPORTED_MEDIA_TYPE, id, detail)
        };
        if is_compressed(headers) {
            return Err(unsupported("the body is compressed, which is not supported"));
        }
        let media = media_type(headers).ok_or_else(|| unsupported("there is no Content-Type"))?;
        let is = |name: &str| media.eq_ignore_ascii_case(name);
        let is_json = || {
            let lower = media.to_ascii_lowercase();
            lower.starts_with("application/") && lower.ends_with("+json")
        };
        if is("application/json") || is_json() {
            Ok(Self::Json)
        } else if is("text/csv") {
            Ok(Self::Csv)
        } else {
            Err(unsupported("the Content-Type is another one"))
        }
    }

    /// Parses a wallet.
    pub(super) async fn wallet(self, bytes: Vec<u8>, id: &RequestId) -> Result<Wallet, Problem> {
        let is_long = bytes.len() > LONG;
        let request_id = id.as_str().to_owned();
        let reader = Reader::new().with_notices(move |message| {
            tracing::info!(target: "formwork_oracle", request_id, "the wallet: {message}");
        });
        let read = move || match self {
            Self::Json => reader.slice(&bytes),
            Self::Csv => reader.csv(bytes.as_slice(), "the body"),
        };
        let wallet = if is_long {
            let read = tokio::task::spawn_blocking(read).await;
            read.map_err(|error| {
                Problem::new(Kind::BROKEN_BODY, id, format!("the body cannot be read: {error}"))
            })?
        } else {
            read()
        };
        let is_json = self == Self::Json;
        wallet.map_err(|error| Problem::wallet(id, &error, is_json))
    }
}

/// Reads a body, up to a maximum size and within a time limit.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    most: usize,
    timeout: Duration,
    id: &RequestId,
) -> Result<Vec<u8>, Problem> {
    read_body(headers, body, most, timeout).await.map_err(|error| match error {
        BodyError::TooLong => {
            let detail =
                format!("a body has at most {most} bytes: send a summary in place of the transactions");
            Problem::new(Kind::BODY_TOO_LONG, id, detail)
        }
        BodyError::TooSlow => {
            let detail =
                format!("the body was not there after {} seconds: send it at once", timeout.as_secs_f64());
            Problem::new(Kind::READ_TIMEOUT, id, detail)
        }
        BodyError::Broken(error) => {
            Problem::new(Kind::BROKEN_BODY, id, format!("the body broke off: {error}"))
        }
    })
}
