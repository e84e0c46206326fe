//! The forms of the pages: login, keys, feedback. Each form has the token of its session.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, header};
use axum::response::{IntoResponse as _, Response};
use formwork_ledger::{Key, KeyError, KeyRole, NewKey, Period, RecordId, format_usd, parse_usd};
use formwork_serve::{media_type, read_body};

use super::filter::{Filter, invalid};
use super::{Cell, Refusal, Table, Visitor, html, read, see_other, time};
use crate::access::{now, unread};
use crate::problem::{Kind, Problem};
use crate::service::{Shared, pages};

/// The maximum size of a form, in bytes.
const MAX_FORM: usize = 16 << 10;

#[derive(Template)]
#[template(path = "page/login.html")]
struct Login {
    message: String,
}

#[derive(Template)]
#[template(path = "page/keys.html")]
struct Keys {
    visitor: Visitor,
    note: String,
    secret: String,
    table: Table,
}

/// Reads a form.
///
/// # Errors
/// [`Kind::UnsupportedMediaType`], [`Kind::Invalid`] for a body that is too long or does not arrive in time.
async fn form(shared: &Shared, request: Request<Body>) -> Result<Filter, Problem> {
    let (parts, body) = request.into_parts();
    if media_type(&parts.headers) != Some("application/x-www-form-urlencoded") {
        let message = "this is a form: set `Content-Type: application/x-www-form-urlencoded`";
        return Err(Problem::new(Kind::UnsupportedMediaType, message));
    }
    let body = read_body(&parts.headers, body, MAX_FORM, shared.engine.limits.read_timeout).await;
    let body =
        body.map_err(|_| Problem::new(Kind::Invalid, "the form is too long, or did not arrive in time"))?;
    Ok(Filter::parse(&String::from_utf8_lossy(&body)))
}

/// Answers `GET /login`.
pub(super) async fn login_page() -> Result<Response, Refusal> {
    html(&Login { message: String::new() })
}

/// Answers `POST /login`.
pub(super) async fn login(
    State(shared): State<Arc<Shared>>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let begun = async {
        let form = form(&shared, request).await?;
        let presented = form.get("key").unwrap_or_default().trim().to_owned();
        let ledger = pages::ledger(&shared)?;
        let key = match ledger.find_key(&presented, now()) {
            Ok(key) => key,
            Err(KeyError::Ledger(error)) => return Err(unread(&error)),
            Err(error) => return Err(Problem::new(Kind::Unauthorized, error.to_string())),
        };
        if key.role != KeyRole::Admin {
            return Err(Problem::new(Kind::Forbidden, "this needs an admin's key"));
        }
        shared.sessions.begin(&key, shared.tls.is_some(), now())
    };
    match begun.await {
        Ok(cookie) => Ok(with_cookie(see_other("/"), &cookie)),
        Err(problem) if matches!(problem.kind, Kind::Unauthorized | Kind::Forbidden) => {
            let status = axum::http::StatusCode::from_u16(problem.kind.status()).unwrap_or_default();
            Ok((status, html(&Login { message: problem.message })?).into_response())
        }
        Err(problem) => Err(problem.into()),
    }
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    // It has hexadecimal digits and the names of attributes alone.
    if let Ok(value) = cookie.parse() {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// Returns the visitor and the form that a request sends, if the form has the token of the visitor's session.
async fn checked(shared: &Shared, visitor: &Visitor, request: Request<Body>) -> Result<Filter, Problem> {
    let form = form(shared, request).await?;
    visitor.check(form.get("csrf").unwrap_or_default())?;
    Ok(form)
}

/// Answers `POST /logout`.
pub(super) async fn logout(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
    headers: HeaderMap,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    checked(&shared, &visitor, request).await?;
    let cookie = shared.sessions.end(&headers, shared.tls.is_some());
    Ok(with_cookie(see_other("/login"), &cookie))
}

/// Answers `POST /runs/{id}/feedback`.
pub(super) async fn feedback(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    visitor: Visitor,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let form = checked(&shared, &visitor, request).await?;
    let run: RecordId = id.parse().map_err(|_| Problem::new(Kind::NotFound, "there is no such run"))?;
    let feedback = form.feedback()?.ok_or_else(|| invalid("feedback", "good or bad"))?;
    read(pages::ledger(&shared)?, move |ledger| ledger.feedback(run, feedback)).await?;
    Ok(see_other(&format!("/runs/{run}")))
}

/// Answers `GET /keys`.
pub(super) async fn keys(State(shared): State<Arc<Shared>>, visitor: Visitor) -> Result<Response, Refusal> {
    shown(&shared, visitor, String::new(), String::new()).await
}

/// Answers `POST /keys`: adds a key and shows its secret once.
pub(super) async fn add(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let form = checked(&shared, &visitor, request).await?;
    let added = async {
        let new = new_key(&form)?;
        read(pages::ledger(&shared)?, move |ledger| ledger.add_key(new, now())).await
    };
    match added.await {
        Ok((key, secret)) => {
            let note = format!("The key `{}` was added.", key.name);
            shown(&shared, visitor, note, secret.reveal().to_owned()).await
        }
        Err(problem) => shown(&shared, visitor, problem.message, String::new()).await,
    }
}

fn new_key(form: &Filter) -> Result<NewKey, Problem> {
    let invalid = |message: &str| Problem::new(Kind::Invalid, message);
    let budget = form
        .get("budget")
        .map(|budget| parse_usd(budget).map_err(|_| invalid("the budget has to be an amount such as 2.50")));
    let number =
        |name: &str, message: &str| form.get(name).map(str::parse).transpose().map_err(|_| invalid(message));
    let models = form.get("models").unwrap_or_default().split(',').map(str::trim);
    Ok(NewKey {
        budget: budget.transpose()?,
        period: match form.get("per") {
            None => None,
            Some(per) => {
                let known =
                    [Period::Day, Period::Week, Period::Month].into_iter().find(|known| known.name() == per);
                Some(known.ok_or_else(|| invalid("the period has to be day, week or month"))?)
            }
        },
        tpm: number("tpm", "the tokens a minute have to be a number")?,
        max_open: number("max_open", "the open requests have to be a number")?,
        rpm: number("rpm", "the requests a minute have to be a number")?,
        models: models.filter(|model| !model.is_empty()).map(str::to_owned).collect(),
        role: if form.get("role") == Some("admin") { KeyRole::Admin } else { KeyRole::Client },
        ..NewKey::new(form.get("name").unwrap_or_default())
    })
}

/// Answers `POST /keys/revoke`.
pub(super) async fn revoke(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let form = checked(&shared, &visitor, request).await?;
    let name = form.get("name").unwrap_or_default().to_owned();
    let revoked =
        async { read(pages::ledger(&shared)?, move |ledger| ledger.revoke_key(&name, now())).await };
    let note = match revoked.await {
        Ok(key) => format!("The key `{}` was revoked.", key.name),
        Err(problem) => problem.message,
    };
    shown(&shared, visitor, note, String::new()).await
}

async fn shown(shared: &Shared, visitor: Visitor, note: String, secret: String) -> Result<Response, Refusal> {
    let keys = read(pages::ledger(shared)?, formwork_ledger::Ledger::keys).await?;
    let row = |key: Key| {
        let state = match (key.revoked, key.expires) {
            (Some(revoked), _) => format!("revoked {}", time(revoked)),
            (None, Some(expires)) => format!("expires {}", time(expires)),
            (None, None) => "valid".to_owned(),
        };
        let limit = |amount: Option<u64>| amount.map_or("no limit".to_owned(), format_usd);
        let number = |limit: Option<u32>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
        vec![
            Cell::runs(&key.name, &[("key", &key.name)]),
            key.hint.as_str().into(),
            key.role.name().into(),
            format_usd(key.spent_in_period(now())).into(),
            format_usd(key.held).into(),
            match key.period {
                Some(period) => format!("{} a {}", limit(key.budget), period.name()),
                None => limit(key.budget),
            }
            .into(),
            number(key.rpm).into(),
            number(key.tpm).into(),
            number(key.max_open).into(),
            if key.models.is_empty() { "all".to_owned() } else { key.models.join(", ") }.into(),
            state.into(),
        ]
    };
    let table = Table {
        title: "All keys",
        head: "key | secret begins with | role | spent of the budget, US dollars | reserved | budget | requests a minute | tokens a minute | open requests | models | state",
        rows: keys.into_iter().map(row).collect(),
    };
    html(&Keys { visitor, note, secret, table })
}
