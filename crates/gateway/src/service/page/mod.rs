//! Pages for admins: what happened, why, and what it costs. Templates escape every text; nothing is loaded from elsewhere.

mod batches;
mod contracts;
mod filter;
mod forms;
mod overview;
mod run;
mod runs;
mod session;
mod table;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{get, post};
use formwork_ledger::Ledger;

use super::refused::{Logged, Refusal};
use super::{Shared, pages};
use crate::access::now;
use crate::problem::{Kind, Problem};
use crate::protocol::timestamp;

pub(crate) use batches::Batches;
pub(crate) use session::{Sessions, Visitor};
use table::{Cell, Table, href, sum};

/// The pages load their style and script from the service alone, and no page may frame them.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

/// Returns the resources of the pages. Their handlers check the visitor.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(overview::overview))
        .route("/runs", get(runs::runs))
        .route("/runs.jsonl", get(runs::export))
        .route("/runs/{id}", get(run::run))
        .route("/contracts", get(contracts::contracts))
        .route("/contracts/{name}", get(contracts::contract))
        .route("/runs/{id}/feedback", post(forms::feedback))
        .route("/keys", get(forms::keys).post(forms::add))
        .route("/keys/revoke", post(forms::revoke))
        .route("/login", get(forms::login_page).post(forms::login))
        .route("/logout", post(forms::logout))
        .route("/page.css", get(asset(include_str!("../../../templates/page/page.css"), "text/css")))
        .route("/page.js", get(asset(include_str!("../../../templates/page/page.js"), "text/javascript")))
        .layer(from_fn(for_people))
}

/// Returns whether a path is a page's, which checks its visitor itself.
pub(super) fn is_page(path: &str) -> bool {
    const PATHS: [&str; 8] =
        ["/", "/runs", "/runs.jsonl", "/contracts", "/keys", "/keys/revoke", "/login", "/logout"];
    PATHS.contains(&path) || path.starts_with("/runs/") || path.starts_with("/contracts/") || is_asset(path)
}

fn is_asset(path: &str) -> bool {
    matches!(path, "/page.css" | "/page.js")
}

fn asset(text: &'static str, media: &'static str) -> impl Fn() -> std::future::Ready<Response> + Clone {
    move || {
        let headers = [
            (header::CONTENT_TYPE, format!("{media}; charset=utf-8")),
            (header::CACHE_CONTROL, "no-cache".to_owned()),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        ];
        std::future::ready((headers, text).into_response())
    }
}

fn is_browser(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

#[derive(Template)]
#[template(path = "page/error.html")]
struct Failed {
    visitor: Visitor,
    title: &'static str,
    message: String,
    fields: Vec<filter::Field>,
}

/// Responds to a browser with a page in place of the JSON of a problem: with the form of the list if its filter cannot be used.
async fn for_people(request: Request, next: Next) -> Response {
    let is_list = request.uri().path() == "/runs";
    let filter = filter::Filter::parse(request.uri().query().unwrap_or_default());
    let is_browser = is_browser(request.headers());
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<Logged>() else { return response };
    let status = response.status();
    if is_browser {
        let page = Failed {
            visitor: Visitor::default(),
            title: status.canonical_reason().unwrap_or("Error"),
            message: problem.0.split_once(": ").map_or("", |(_, message)| message).to_owned(),
            fields: if is_list && status == StatusCode::BAD_REQUEST { filter.fields() } else { Vec::new() },
        };
        response = (status, html(&page)).into_response();
    }
    response.extensions_mut().insert(problem);
    response
}

/// The admin of a request: of a session, of a presented key, or anyone for a service without keys. Others are refused; a browser is
/// sent to the login.
impl FromRequestParts<Arc<Shared>> for Visitor {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let headers = &parts.headers;
        if shared.is_view {
            return Ok(Self::default());
        }
        let session = shared.access.ledger().and_then(|ledger| shared.sessions.find(headers, ledger, now()));
        if let Some(visitor) = session {
            return Ok(visitor);
        }
        let found = pages::admin(shared, headers).and_then(|()| shared.access.client(headers));
        match found {
            Ok(client) => Ok(Self { name: client.name().to_owned(), csrf: None }),
            Err(problem) if is_browser(headers) && problem.kind == Kind::Unauthorized => {
                Err(Refusal::from(see_other("/login")))
            }
            Err(problem) => Err(problem.into()),
        }
    }
}

fn see_other(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location), (header::CACHE_CONTROL, "no-store")])
        .into_response()
}

/// Reads from the ledger on a thread that may block.
async fn read<T: Send + 'static>(
    ledger: &Ledger,
    read: impl FnOnce(&Ledger) -> Result<T, formwork_ledger::Error> + Send + 'static,
) -> Result<T, Problem> {
    let ledger = ledger.clone();
    let done = tokio::task::spawn_blocking(move || read(&ledger)).await;
    done.map_err(internal)?.map_err(|error| match error {
        formwork_ledger::Error::Storage { .. } => internal(error),
        error => Problem::new(Kind::Invalid, error.to_string()),
    })
}

fn internal(error: impl ToString) -> Problem {
    Problem::new(Kind::Internal, error.to_string())
}

/// Returns a text with escapes in place of characters that nobody sees, or that change the order of others: models and clients wrote it.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        let is_hidden = one.is_control() && !matches!(one, '\n' | '\r' | '\t')
            || matches!(
                one,
                '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            )
            || matches!(one, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
        match is_hidden {
            // As JSON has it.
            true => one.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out += &format!("\\u{unit:04x}")),
            false => out.push(one),
        }
    }
    out
}

/// Returns the response with a page.
fn html(page: &impl Template) -> Result<Response, Refusal> {
    let text = visible(&page.render().map_err(internal)?);
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers would send the forms of the pages with the origin `null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Html(text)).into_response())
}

/// A bar of a drawing that is 600 wide and 80 high.
#[derive(Debug)]
struct Bar {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// The class of its style; empty for none.
    class: &'static str,
    title: String,
}

fn time(time: formwork_core::Time) -> String {
    timestamp(time.0 / 1000)
}

fn dollars(micro_usd: Option<u64>) -> String {
    micro_usd.map_or("unknown".to_owned(), formwork_ledger::format_usd)
}

/// Returns a share as a percentage.
fn share(part: u64, of: u64) -> String {
    match of {
        0 => "-".to_owned(),
        of => format!("{:.1} %", part as f64 * 100.0 / of as f64),
    }
}
